"""Paths of data, logs and downloads: outside the checkout, so that unprivileged servers can reach them."""

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .messages import EnginesError, say

LOCK_SECONDS = 900


@dataclass(frozen=True)
class Places:
    root: Path
    home: Path

    @property
    def downloads(self) -> Path:
        return _owned_folder(self.root / "downloads")

    @property
    def logs(self) -> Path:
        return _owned_folder(self.home / "logs")

    @property
    def state_file(self) -> Path:
        return self.home / "state.json"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def make(self) -> None:
        _owned_folder(self.root)
        _owned_folder(self.home)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One lock for all checkouts of a user: they share downloads and must not pick the same port."""
        self.make()
        with (self.root / "lock").open("a") as lock:
            _wait_for_lock(lock.fileno(), Path(lock.name))
            # A reset that held the lock before us may have removed the folder.
            self.make()
            yield


def places_for(checkout: Path) -> Places:
    chosen = os.environ.get("TOOLSCRIPT_ENGINES_DIR")
    root = Path(chosen or f"/var/tmp/toolscript-engines-{os.geteuid()}").absolute()
    mark = hashlib.sha256(os.fsencode(checkout)).hexdigest()[:12]
    return Places(root=root, home=root / mark)


def _owned_folder(folder: Path) -> Path:
    """Anyone may create names in /var/tmp, so trust only a real folder that is ours alone to write."""
    if not os.path.lexists(folder):
        folder.mkdir(mode=0o755, parents=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise EnginesError(f"{folder} is not a folder (symbolic links are refused)")
    if status.st_uid != os.geteuid():
        raise EnginesError(f"{folder} belongs to user id {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise EnginesError(f"{folder} can be written by others; run: chmod go-w {folder}")
    return folder


def _wait_for_lock(descriptor: int, lock: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    is_reported = False
    while not _try_lock(descriptor):
        if not is_reported:
            say("waiting for another start, stop or reset to finish")
            is_reported = True
        if time.monotonic() > deadline:
            raise EnginesError(f"{lock} was still held after {LOCK_SECONDS} s by another run of this script")
        time.sleep(0.1)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
