"""The record of the running gateway of a data folder: its address, its token, and the lock that it holds."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from toolscript.core.errors import SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import PRIVATE_FOLDER, make_private, private, read_own_file, write_private
from toolscript.gateway.config.read import ConfigPlace
from toolscript.gateway.record import RECORD, RUN, RunningGateway, lock_of, read_living
from toolscript.gateway.settings import ENVIRONMENT, GatewaySettings

if TYPE_CHECKING:
    from toolscript.gateway.secret_store import SecretStore

LOOK_SECONDS = 0.5

# Settings that a gateway fixes at its start: a command with other values runs its own.
CHOICES = ("search_model", "search_alpha", "search_device", "search_no_cache")
# In the details of an error: another process was faster.
ALREADY_RUNNING = "already_running"


class RunningFile:
    """Record of the running gateway. Its process holds a lock, because a pid in a file may be reused."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORD
        self._lock = lock_of(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """Return the recorded gateway if its process still runs."""
        return read_living(self._path)

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
            make_private(self._lock.parent)
            # A process that can open the lock could hold it and look like a running gateway.
            self._lock.parent.chmod(PRIVATE_FOLDER)
            return open(self._lock, "ab", opener=private)
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
    def is_held(self) -> bool:
        return not self._lock.closed

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


def own_token(folder: Path) -> str:
    """Return the token that the gateway generates once and reuses at every start: client configs contain it."""
    path = folder / "token"
    try:
        if (stored := read_own_file(path).strip()) and stored.isascii():
            return stored
    except (OSError, ValueError):
        pass
    token = secrets.token_urlsafe(32)
    try:
        make_private(folder)
        write_private(path, token)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return token


def _cannot_write(folder: Path, error: OSError) -> SetupError:
    return SetupError(
        f"{folder} cannot be written: {error.strerror}",
        hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
    )


def _take_with_retries(lock: IO[bytes]) -> bool:
    """Retry for a moment: a process that checks for a running gateway holds the lock briefly, too."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not take(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def choices_of(settings: GatewaySettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in CHOICES}


def running_here(settings: GatewaySettings) -> RunningGateway | None:
    return running_file(settings).read()


def running_file(settings: GatewaySettings) -> RunningFile:
    """Return the record of this user and data folder, which have one gateway."""
    return RunningFile(settings.data_folder / RUN)


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
