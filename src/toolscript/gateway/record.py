"""The record of the running gateway of a data folder as others read it: its address, its token, its version.

Apart from what writes it: `toolscript mcp` loads this, and starts with nothing heavier.
"""

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from toolscript.core.file_locks import take
from toolscript.core.own_files import read_own_file
from toolscript.core.version import __version__

FIND_SECONDS = 1.0
# The folder, under the data folder, of the record and the tokens.
RUN, RECORD = "run", "gateway.json"
# Raised when a client of before cannot use a gateway of now, or the other way round.
API = 1


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


def running_in(folder: Path) -> RunningGateway | None:
    """Return the gateway of this folder for records if its process still runs."""
    return read_living(folder / RECORD)


def token_at(folder: Path, url: str) -> str:
    """Return the token of this user's gateway at this address; empty if none runs there."""
    running = running_in(folder)
    is_ours = running is not None and _origin(url) == running.url
    return running.token if running is not None and is_ours else ""


def _origin(url: str) -> str:
    """Return the address without the path of a workspace."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def read_living(path: Path) -> RunningGateway | None:
    try:
        running = _read(path)
        with lock_of(path).open("ab") as lock:
            return None if take(lock, shared=True) else running
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def lock_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def _read(path: Path) -> RunningGateway | None:
    data = json.loads(read_own_file(path))
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


def is_older(version: str, than: str) -> bool:
    return _parts(version) < _parts(than)


def _parts(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:4]]


def is_replaced(running: RunningGateway) -> bool:
    """Return whether a gateway of this version takes the place of the one that runs: never of a newer one."""
    return hasattr(socket, "send_fds") and is_older(running.version, __version__)


def listens(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or "", address.port or 80), FIND_SECONDS).close()
    except OSError:
        return False
    return True
