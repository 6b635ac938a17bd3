"""Discovery of the gateway that runs for a set of config files, and of its address and token."""

import hashlib
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit

from toolscript.core.errors import ConfigInvalid, SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import is_own, open_regular
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.config.read import ConfigPlace
from toolscript.gateway.config.trust import how_to_trust
from toolscript.gateway.settings import ENVIRONMENT, FLAG, GatewaySettings, environment, usual_data_dir

LOOK_SECONDS = 0.5
PRIVATE_FOLDER = 0o700

FIND_SECONDS = 1.0
# Settings that a gateway fixes at its start: a command with other values runs its own.
CHOICES = ("search_model", "search_alpha", "search_device", "search_no_cache")
REFRESHES = "--refresh queries the servers again, for this command alone"

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunningGateway:
    """`choices`: settings that a command may have set differently, such as the model.

    `token`: the bearer token it requires. Every process that can read this file may use it.
    """

    pid: int
    url: str
    version: str
    choices: Mapping[str, object] = field(default_factory=dict)
    token: str = field(default="", repr=False)


class RunningFile:
    """Record of a running gateway. Its process holds a lock, because a pid in a file may be reused."""

    def __init__(self, folder: Path, config_files: Sequence[Path]) -> None:
        key = hashlib.sha256(json.dumps([str(path) for path in config_files]).encode()).hexdigest()[:16]
        self._path = folder / f"gateway-{key}.json"
        self._lock = _lock_of(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> RunningGateway | None:
        """Return the recorded gateway if its process still runs."""
        return _read_living(self._path)

    @contextmanager
    def held(self, url: str, version: str, choices: Mapping[str, object], token: str = "") -> Iterator[None]:
        """Keep the record for the duration of the context. A killed process loses its lock, too."""
        with self._open() as lock:
            if not _take_with_retries(lock):
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
            # A process that can open the lock could hold it and look like a running gateway.
            self._lock.parent.chmod(PRIVATE_FOLDER)
            return open(self._lock, "ab", opener=_private)
        except OSError as error:
            raise _cannot_write(self._lock.parent, error) from error


def token_at(folder: Path, url: str) -> str:
    """Return the token of this user's gateway at this address; empty if none runs there."""
    for path in folder.glob("gateway-*.json"):
        running = _read_living(path)
        if running is not None and running.url == url.rstrip("/"):
            return running.token
    return ""


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


def find_running(
    settings: GatewaySettings, *, refresh: bool = False, blocks: bool = False
) -> GatewayClient | None:
    """Return a client of the configured address, else of these config files' gateway if its settings match.

    `refresh`: the command queries the servers itself. `blocks`: requests of the client block their thread.
    Whatever keeps a running gateway from use is logged.
    """
    if settings.gateway_url:
        token = settings.gateway_token or token_at(settings.data_folder / "run", settings.gateway_url)
        return GatewayClient(
            settings.gateway_url, token=token, search_type=_explicit_type(settings), blocks=blocks
        )
    running = running_here(settings)
    if running is None:
        _warn_of_another_gateway(settings)
        return None
    if why := REFRESHES if refresh else _why_unusable(running, settings):
        logger.warning("the gateway at %s is not used: %s", running.url, why)
        return None
    return GatewayClient(
        running.url,
        token=settings.gateway_token or running.token,
        find_again=lambda: _find_restarted(settings),
        note=lambda: _untrusted_note(settings, running),
        search_type=_explicit_type(settings),
        blocks=blocks,
    )


def _explicit_type(settings: GatewaySettings) -> SearchType | None:
    """Return the search type if it was set explicitly; otherwise the gateway's default applies."""
    return SearchType(settings.search_type) if "search_type" in settings.sources else None


def _untrusted_note(settings: GatewaySettings, running: RunningGateway) -> str:
    """Name untrusted servers of this folder: a gateway of another folder does not know its file."""
    if running_file(settings).read() == running:
        return ""
    try:
        config = place_of(settings).read(environment())
    except ConfigInvalid:
        return ""
    waiting = [f"not searched: the servers of {path}; {how_to_trust(path)}" for path in sorted(config.untrusted)]
    projects = config.used.intersection(place_of(settings).paths()[1:])
    late = [f"{path} is trusted now: start this again to have its servers" for path in sorted(projects)]
    return "; ".join([*waiting, *late])


def _why_unusable(running: RunningGateway, settings: GatewaySettings) -> str:
    """Return why this gateway cannot be used, or an empty string. Only explicit settings count, not defaults."""
    for name in CHOICES:
        actual, requested = running.choices.get(name), getattr(settings, name)
        if name in settings.sources and actual != requested:
            return f"it has {name} {actual}, and this command has {requested}"
    return "" if listens(running.url) else "it does not listen"


def _warn_of_another_gateway(settings: GatewaySettings) -> None:
    if settings.sources.get("data_dir") == FLAG:
        usual = running_here(replace(settings, data_dir=usual_data_dir()))
        if usual is not None:
            reason = f"it has another --data-dir than {settings.data_dir}"
            logger.warning("the gateway at %s is not used: %s", usual.url, reason)
            return
    own, *projects = place_of(settings).paths()
    other = RunningFile(settings.data_folder / "run", [own]).read() if projects else None
    if other is not None:
        logger.warning(
            "the gateway at %s is not used: %s has servers of its own, which are started for this command alone "
            "(`toolscript gateway start --port 0` in this folder keeps them running)",
            other.url,
            projects[0],
        )


def _find_restarted(settings: GatewaySettings) -> tuple[str, str] | None:
    running = running_here(settings)
    return None if running is None else (running.url, settings.gateway_token or running.token)


def choices_of(settings: GatewaySettings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in CHOICES}


def running_here(settings: GatewaySettings) -> RunningGateway | None:
    return next(filter(None, (file.read() for file in running_files(settings))), None)


def running_file(settings: GatewaySettings) -> RunningFile:
    """Return the file that a gateway of this folder writes."""
    return running_files(settings)[0]


def running_files(settings: GatewaySettings) -> list[RunningFile]:
    """Return the files to check. The user's config file is always in the key, a project's if it names servers.

    An untrusted project file has no servers, so the gateway of the user's own file serves, too.
    """
    place, folder = place_of(settings), settings.data_folder / "run"
    own, *projects = place.paths()
    try:
        config = place.read(environment())
    except ConfigInvalid:
        # A running gateway keeps the config it read last.
        return [RunningFile(folder, [own, *(path for path in projects if path.exists())])]
    naming = [path for path in projects if path in config.used | config.untrusted]
    first = RunningFile(folder, [own, *naming])
    return [first] if config.used.issuperset(naming) else [first, RunningFile(folder, [own])]


def place_of(settings: GatewaySettings) -> ConfigPlace:
    return ConfigPlace(settings.config, by_person=settings.sources.get("config") != ENVIRONMENT)


def listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), FIND_SECONDS).close()
    except OSError:
        return False
    return True
