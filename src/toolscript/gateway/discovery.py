"""Which gateway is running for a set of config files, so that a command can find and stop it."""

import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from toolscript.errors import SetupError

LOOK_SECONDS = 0.5
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True)
class RunningGateway:
    """`choices`: what it was told that a command may be told differently, such as its model.

    `token`: what it wants to be shown. Whoever can read this file may have it.
    """

    pid: int
    url: str
    version: str
    choices: Mapping[str, object] = field(default_factory=dict)
    token: str = field(default="", repr=False)


class RunningFile:
    """A gateway holds a lock for as long as it lives: a number in a file may by now be a stranger's process."""

    def __init__(self, folder: Path, config_files: Sequence[Path]) -> None:
        key = hashlib.sha256(json.dumps([str(path) for path in config_files]).encode()).hexdigest()[:16]
        self._path = folder / f"gateway-{key}.json"
        self._lock = _lock_of(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """The gateway that wrote itself down, if it still lives."""
        return _read_living(self._path)

    @contextmanager
    def held(self, url: str, version: str, choices: Mapping[str, object], token: str = "") -> Iterator[None]:
        """Written down for as long as this lasts, by whoever dies how."""
        with self._open() as lock:
            if not _take_soon(lock):
                raise SetupError("a gateway is already running", hint="`toolscript gateway stop` stops it")
            running = RunningGateway(os.getpid(), url, version, choices, token)
            write_private(self._path, json.dumps(asdict(running)))
            try:
                yield
            finally:
                self._path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            # Who can open the lock could hold it, and pass for a gateway that runs.
            self._lock.parent.chmod(PRIVATE_FOLDER)
            return open(self._lock, "ab", opener=_private)
        except OSError as error:
            raise _cannot_write(self._lock.parent, error) from error


def token_at(folder: Path, url: str) -> str:
    """The token of a gateway of this user that runs at this address; empty: none does."""
    for path in folder.glob("gateway-*.json"):
        running = _read_living(path)
        if running is not None and running.url == url.rstrip("/"):
            return running.token
    return ""


def own_token(folder: Path) -> str:
    """The one that a gateway makes for itself, the same at every start: clients have it in their configs."""
    path = folder / "token"
    try:
        if (known := _read_ours(path).strip()) and known.isascii():
            return known
    except (OSError, ValueError):
        pass
    token = secrets.token_urlsafe(32)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_private(path, token)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return token


def _cannot_write(folder: Path, error: OSError) -> SetupError:
    return SetupError(
        f"{folder} cannot be written: {error.strerror}",
        hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
    )


def write_private(path: Path, text: str) -> None:
    """For this user alone, from its first moment on."""
    new = path.with_suffix(f".{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with open(new, "x", encoding="utf-8", opener=_private) as file:
        file.write(text)
    new.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read_ours(path: Path) -> str:
    """Not what another user wrote: it says where requests and their token are sent."""
    with path.open("r", encoding="utf-8") as file:
        user = getattr(os, "getuid", None)
        if user is not None and os.fstat(file.fileno()).st_uid not in {user(), 0}:
            raise PermissionError(f"{path} belongs to another user")
        return file.read()


def _read_living(path: Path) -> RunningGateway | None:
    try:
        running = _read(path)
        with _lock_of(path).open("ab") as lock:
            return None if _take(lock, shared=True) else running
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _read(path: Path) -> RunningGateway | None:
    data = json.loads(_read_ours(path))
    running = RunningGateway(
        int(data["pid"]),
        str(data["url"]),
        str(data["version"]),
        dict(data["choices"]),
        str(data.get("token", "")),
    )
    # 0 and less are groups of processes, ours among them, and whoever reads this may go on to end it.
    return running if running.pid > 0 else None


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

    def _take(lock: IO[bytes], *, shared: bool = False) -> bool:
        del shared
        try:
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(lock: IO[bytes], *, shared: bool = False) -> bool:
        """Whether nobody else has it. It is given back when the file is closed, or its process ends.

        Shared: those who only look whether a gateway runs do not take each other for one.
        """
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
