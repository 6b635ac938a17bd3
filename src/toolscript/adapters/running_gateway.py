"""Which gateway is running for a set of config files, so that a command can find and stop it."""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from toolscript.errors import SetupError

LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class RunningGateway:
    """`choices`: what it was told that a command may be told differently, such as its model."""

    pid: int
    url: str
    version: str
    choices: Mapping[str, object] = field(default_factory=dict)


class RunningFile:
    """A gateway holds a lock for as long as it lives: a number in a file may by now be a stranger's process."""

    def __init__(self, folder: Path, config_files: Sequence[Path]) -> None:
        key = hashlib.sha256(json.dumps([str(path) for path in config_files]).encode()).hexdigest()[:16]
        self._path = folder / f"gateway-{key}.json"
        self._lock = folder / f"gateway-{key}.lock"

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """The gateway that wrote itself down, if it still lives."""
        try:
            data = json.loads(self._path.read_text("utf-8"))
            running = RunningGateway(
                int(data["pid"]), str(data["url"]), str(data["version"]), dict(data["choices"])
            )
            # 0 and less are groups of processes, ours among them, and whoever reads this may go on to end it.
            return running if running.pid > 0 and self._is_held() else None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    @contextmanager
    def held(self, url: str, version: str, choices: Mapping[str, object]) -> Iterator[None]:
        """Written down for as long as this lasts, by whoever dies how."""
        with self._open() as lock:
            if not _take_soon(lock):
                raise SetupError("a gateway is already running", hint="`toolscript gateway stop` stops it")
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(asdict(RunningGateway(os.getpid(), url, version, choices))), "utf-8")
            new.replace(self._path)
            try:
                yield
            finally:
                self._path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            return self._lock.open("ab")
        except OSError as error:
            raise SetupError(
                f"{self._lock.parent} cannot be written: {error.strerror}",
                hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
            ) from error

    def _is_held(self) -> bool:
        with self._lock.open("ab") as lock:
            return not _take(lock)


def _take_soon(lock: IO[bytes]) -> bool:
    """Whoever only looks whether a gateway runs has the lock for a moment, too."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not _take(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


if sys.platform == "win32":
    import msvcrt

    def _take(lock: IO[bytes]) -> bool:
        try:
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(lock: IO[bytes]) -> bool:
        """Whether nobody else has it. It is given back when the file is closed, or its process ends."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
