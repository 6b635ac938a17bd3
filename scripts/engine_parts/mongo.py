"""A server that speaks MongoDB's protocol: `mongod` when there is one, otherwise SecantusDB."""

import shutil
import signal
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from . import secantus
from .accounts import unprivileged_account
from .places import Places
from .processes import Launch

OP_MSG = 2013
HEADER_SIZE = 16
ANSWER_LIMIT = 1 << 20


@dataclass(frozen=True)
class Mongo:
    places: Places
    name: str = "mongo"
    port_count: int = 1
    keeps_port: bool = False
    must_settle_first: bool = False
    stop_signal: signal.Signals = signal.SIGTERM
    ready_seconds: float = 90

    def prepare(self) -> None:
        if _mongod() is None:
            secantus.install_if_missing(self.places)

    def launch(self, port: int) -> Launch:
        mongod = _mongod()
        # Each keeps its own folder: neither can read the other's files.
        kind = "mongod" if mongod else "secantus"
        account = unprivileged_account()
        folder = account.own_folder(self.places.home / f"{self.name}-{kind}")
        if mongod:
            argv, version = _mongod_arguments(mongod, port, folder), "mongod from PATH"
        else:
            argv, version = secantus.arguments(self.places, port, folder), f"SecantusDB {secantus.VERSION}"
        return Launch(argv, account, folder, self.places.log(self.name), version)

    def is_ready(self, port: int) -> bool:
        try:
            return b"maxWireVersion" in _say_hello(port)
        except OSError:
            return False

    def finish(self, port: int) -> None:
        """Nothing to set up: databases appear when first written to."""


def _mongod() -> str | None:
    return shutil.which("mongod")


def _mongod_arguments(mongod: str, port: int, folder: Path) -> list[str]:
    return [
        mongod,
        "--bind_ip",
        "127.0.0.1",
        "--port",
        str(port),
        "--dbpath",
        str(folder),
        "--nounixsocket",
        "--wiredTigerCacheSizeGB",
        "0.5",
    ]


def _say_hello(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(_hello())
        with connection.makefile("rb") as answer:
            header = answer.read(HEADER_SIZE)
            if len(header) < HEADER_SIZE:
                return b""
            length = struct.unpack_from("<i", header)[0]
            return answer.read(min(length - HEADER_SIZE, ANSWER_LIMIT))


def _hello() -> bytes:
    """{hello: 1, $db: "admin"} as one OP_MSG; see the wire protocol in MongoDB's manual."""
    elements = b"\x10hello\0" + struct.pack("<i", 1) + b"\x02$db\0" + struct.pack("<i", 6) + b"admin\0"
    document = struct.pack("<i", len(elements) + 5) + elements + b"\0"
    body = struct.pack("<IB", 0, 0) + document
    return struct.pack("<iiii", HEADER_SIZE + len(body), 1, 0, OP_MSG) + body
