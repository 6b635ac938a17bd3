"""The record of the running gateway of a data folder: its address, its token, and the lock that it holds."""

import json
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from toolscript.core.errors import SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import is_own, open_regular
from toolscript.core.version import __version__
from toolscript.gateway.config.read import ConfigPlace
from toolscript.gateway.settings import ENVIRONMENT, GatewaySettings

if TYPE_CHECKING:
    from toolscript.gateway.secret_store import SecretStore

LOOK_SECONDS = 0.5
PRIVATE_FOLDER = 0o700

FIND_SECONDS = 1.0
# Settings that a gateway fixes at its start: a command with other values runs its own.
CHOICES = ("search_model", "search_alpha", "search_device", "search_no_cache")
RECORD = "gateway.json"
# Raised when a client of before cannot use a gateway of now, or the other way round.
API = 1
# In the details of an error: another process was faster.
ALREADY_RUNNING = "already_running"


@dataclass(frozen=True)
class RunningGateway:
    """`choices`: settings that a command may have set differently, such as the model.

    `token`: the bearer token it requires. Every process that can read this file may use it. `workspace`: the id of
    the one that it serves without being told another. It listens from its record on, and answers once `ready`.
    """

    pid: int
    url: str
    version: str
    choices: Mapping[str, object] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    workspace: str = ""
    ready: bool = True
    api: int = API


class RunningFile:
    """Record of the running gateway. Its process holds a lock, because a pid in a file may be reused."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORD
        self._lock = _lock_of(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """Return the recorded gateway if its process still runs."""
        return _read_living(self._path)

    @contextmanager
    def held(self) -> Iterator["Record"]:
        """Hold the lock for the duration of the context. A killed process loses its lock, too."""
        with self._open() as lock:
            if not _take_with_retries(lock):
                raise SetupError(
                    "a gateway is already running",
                    hint="`toolscript gateway stop` stops it",
                    details={ALREADY_RUNNING: True},
                )
            # The record of a killed process must not be taken for ours.
            self._path.unlink(missing_ok=True)
            record = Record(self._path, lock)
            try:
                yield record
            finally:
                record.release()

    def _open(self) -> IO[bytes]:
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            # A process that can open the lock could hold it and look like a running gateway.
            self._lock.parent.chmod(PRIVATE_FOLDER)
            return open(self._lock, "ab", opener=_private)
        except OSError as error:
            raise _cannot_write(self._lock.parent, error) from error


class Record:
    """The record of this process, which holds the lock."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self._path = path
        self._lock = lock

    def write(self, running: RunningGateway) -> None:
        write_private(self._path, json.dumps(asdict(running)))

    @property
    def descriptor(self) -> int:
        """The lock's file descriptor. Whoever has a copy of it holds the lock, too."""
        return self._lock.fileno()

    def hand_over(self) -> None:
        """Leave lock and record to a process that has a copy of the descriptor."""
        self._lock.close()

    def release(self) -> None:
        """Give the place to another gateway, which may start from now on."""
        if not self._lock.closed:
            self._path.unlink(missing_ok=True)
            self._lock.close()


def token_at(folder: Path, url: str) -> str:
    """Return the token of this user's gateway at this address; empty if none runs there."""
    running = _read_living(folder / RECORD)
    is_ours = running is not None and _origin(url) == running.url
    return running.token if running is not None and is_ours else ""


def _origin(url: str) -> str:
    """Return the address without the path of a workspace."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def own_token(folder: Path) -> str:
    """Return the token that the gateway generates once and reuses at every start: client configs contain it."""
    path = folder / "token"
    try:
        if (stored := _read_own_file(path).strip()) and stored.isascii():
            return stored
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
    """Write a file that only this user can read, from its creation on."""
    new = path.with_suffix(f".{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with open(new, "x", encoding="utf-8", opener=_private) as file:
        file.write(text)
    new.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read_own_file(path: Path) -> str:
    """Read a file of this user only: its content decides where requests and their token are sent."""
    with os.fdopen(open_regular(path, follow_links=True), "r", encoding="utf-8") as file:
        if not is_own(os.fstat(file.fileno())):
            raise PermissionError(f"{path} belongs to another user")
        return file.read()


def _read_living(path: Path) -> RunningGateway | None:
    try:
        running = _read(path)
        with _lock_of(path).open("ab") as lock:
            return None if take(lock, shared=True) else running
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _read(path: Path) -> RunningGateway | None:
    data = json.loads(_read_own_file(path))
    running = RunningGateway(
        int(data["pid"]),
        str(data["url"]),
        str(data["version"]),
        dict(data["choices"]),
        str(data.get("token", "")),
        str(data.get("workspace", "")),
        data.get("ready") is True,
        int(data.get("api", 0)),
    )
    # 0 and negative pids are process groups, ours among them, and `stop` sends a signal to this pid.
    return running if running.pid > 0 else None


def _take_with_retries(lock: IO[bytes]) -> bool:
    """Retry for a moment: a process that checks for a running gateway holds the lock briefly, too."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not take(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_older(version: str, than: str) -> bool:
    return _parts(version) < _parts(than)


def _parts(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:4]]


def is_replaced(running: RunningGateway) -> bool:
    """Return whether a gateway of this version takes the place of the one that runs: never of a newer one."""
    return hasattr(socket, "send_fds") and is_older(running.version, __version__)


def choices_of(settings: GatewaySettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in CHOICES}


def running_here(settings: GatewaySettings) -> RunningGateway | None:
    return running_file(settings).read()


def running_file(settings: GatewaySettings) -> RunningFile:
    """Return the record of this user and data folder, which have one gateway."""
    return RunningFile(settings.data_folder / "run")


def place_of(settings: GatewaySettings) -> ConfigPlace:
    """Return the config files, without secrets: to read them may take a while. See `with_secrets`."""
    return ConfigPlace(settings.config, by_person=settings.sources.get("config") != ENVIRONMENT)


def with_secrets(place: ConfigPlace, data_folder: Path) -> ConfigPlace:
    """Return the place with the secrets of its servers, which whoever starts them needs."""
    return replace(place, find_secret=_SecretsWhenNeeded(data_folder.expanduser()))


class _SecretsWhenNeeded:
    """Most configs reference no secret: what reads one is imported for the first that does."""

    def __init__(self, data_folder: Path) -> None:
        self._data_folder = data_folder
        self._secrets: SecretStore | None = None

    def __call__(self, name: str) -> str | None:
        if self._secrets is None:
            from toolscript.gateway.secret_store import open_secret_store

            self._secrets = open_secret_store(self._data_folder)
        return self._secrets.get(name)


def listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), FIND_SECONDS).close()
    except OSError:
        return False
    return True
