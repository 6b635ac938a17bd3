"""A server that speaks MongoDB's protocol, with users: `mongod` when there is one, otherwise SecantusDB."""

import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import mongo_users, mongo_wire, processes, secantus
from .accounts import unprivileged_account
from .messages import EnginesError, say
from .places import Places
from .ports import choose_port
from .processes import Launch


@dataclass(frozen=True)
class Mongo:
    places: Places
    name: str = "mongo"
    port_count: int = 1
    keeps_port: bool = False
    must_settle_first: bool = False
    stop_signal: signal.Signals = signal.SIGTERM
    ready_seconds: float = 90

    @property
    def folder(self) -> Path:
        """Data folder, one per server program: neither can read the other's files."""
        return self.places.home / f"{self.name}-{'mongod' if _mongod() else 'secantus'}"

    def prepare(self) -> None:
        if _mongod() is None:
            secantus.install_if_missing(self.places)
        unprivileged_account().own_folder(self.folder)
        if not mongo_users.have_been_created(self.places, self.folder):
            self._make_users()

    def launch(self, port: int) -> Launch:
        return self._launch(port, with_passwords=True)

    def is_ready(self, port: int) -> bool:
        try:
            return b"maxWireVersion" in mongo_wire.run_command(port, {"hello": 1})
        except OSError:
            return False

    def finish(self, port: int) -> None:
        """Nothing to set up: databases appear when first written to."""

    def variables(self, port: int) -> Mapping[str, str]:
        """Return the URLs. A server from before users existed needs no login."""
        if not mongo_users.have_been_created(self.places, self.folder):
            return {"TOOLSCRIPT_MONGO_URL": f"mongodb://127.0.0.1:{port}"}
        return {
            "TOOLSCRIPT_MONGO_URL": mongo_users.url(self.places, mongo_users.READER, port),
            "TOOLSCRIPT_MONGO_WRITER_URL": mongo_users.url(self.places, mongo_users.WRITER, port),
        }

    def _launch(self, port: int, *, with_passwords: bool) -> Launch:
        mongod = _mongod()
        if mongod:
            argv, version = _mongod_arguments(mongod, port, self.folder), "mongod from PATH"
        else:
            argv, version = secantus.arguments(self.places, port, self.folder), f"SecantusDB {secantus.VERSION}"
        if with_passwords:
            argv.append("--auth")
        return Launch(argv, unprivileged_account(), self.folder, self.places.log(self.name), version)

    def _make_users(self) -> None:
        say("making the users of MongoDB")
        port = choose_port(None, self.port_count, [])
        process = processes.spawn(self._launch(port, with_passwords=False))
        try:
            if not processes.wait_until(lambda: self.is_ready(port), self.ready_seconds):
                raise EnginesError(f"{self.name} gave no answer; see {self.places.log(self.name)}")
            mongo_users.make(self.places, self.folder, port)
        finally:
            processes.stop(process, self.stop_signal)
            processes.wait_until_reaped(process)


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
