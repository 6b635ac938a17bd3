"""A private PostgreSQL with one role and one database, both called toolscript."""

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .accounts import Account, bare_environment, postgres_account
from .messages import EnginesError, say
from .passwords import stored_password
from .places import Places
from .processes import Launch, run_logged

INSTALL_SECONDS = 900
INITDB_SECONDS = 120
PSQL_SECONDS = 60
MAX_SOCKET_FOLDER = 90

# Commits wait until the write-ahead log is written, as PostgreSQL ships it: tests about killed processes must
# mean something. Without fsync only a crash of the whole machine loses writes, which no test can cause. With it,
# to drop the database of a test takes seconds.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
}

SET_UP = """\
\\set ON_ERROR_STOP on
SELECT 'CREATE ROLE toolscript' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'toolscript') \\gexec
ALTER ROLE toolscript LOGIN CREATEDB PASSWORD '{password}';
SELECT 'CREATE DATABASE toolscript OWNER toolscript'
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'toolscript') \\gexec
"""


@dataclass(frozen=True)
class Postgres:
    places: Places
    name: str = "postgres"
    port_count: int = 1
    keeps_port: bool = False
    must_settle_first: bool = False
    # The fast shutdown; SIGTERM would wait for every client to hang up.
    stop_signal: signal.Signals = signal.SIGINT
    ready_seconds: float = 60

    @property
    def folder(self) -> Path:
        return self.places.home / self.name

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def prepare(self) -> None:
        programs = find_programs() or _install(self.places.log("install"))
        if len(str(self.folder)) > MAX_SOCKET_FOLDER:
            raise EnginesError(f"{self.folder} is too long for a socket; shorten TOOLSCRIPT_ENGINES_DIR")
        account = postgres_account()
        account.own_folder(self.folder)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(programs, account)
        self._check_version(programs)

    def launch(self, port: int) -> Launch:
        programs = _programs()
        settings = SETTINGS | {"port": str(port), "unix_socket_directories": str(self.folder)}
        argv = [str(programs / "postgres"), "-D", str(self.data)]
        for key, value in settings.items():
            argv += ["-c", f"{key}={value}"]
        version = f"PostgreSQL {_major_version(programs)}"
        return Launch(argv, postgres_account(), self.folder, self.places.log(self.name), version)

    def is_ready(self, port: int) -> bool:
        question = [str(_programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "5"]
        return subprocess.call(question, env=bare_environment(Path("/")), timeout=30) == 0

    def finish(self, port: int) -> None:
        """Repeated at each start, so that an interrupted first start repairs itself."""
        account = postgres_account()
        argv = [
            str(_programs() / "psql"),
            "-qX",
            "-h",
            str(self.folder),
            "-p",
            str(port),
            "-U",
            account.name,
            "-d",
            "postgres",
        ]
        run_logged(
            account.command(argv),
            self.places.log("postgres-setup"),
            PSQL_SECONDS,
            folder=Path("/"),
            env=bare_environment(self.folder),
            text=SET_UP.format(password=self.password()),
        )

    def url(self, port: int) -> str:
        return f"postgresql://toolscript:{self.password()}@127.0.0.1:{port}/toolscript"

    def password(self) -> str:
        return stored_password(self.places.home / "postgres.password")

    def _initialise(self, programs: Path, account: Account) -> None:
        """In a folder that gets its name only when complete, so that an interrupted run leaves no half."""
        say("creating the PostgreSQL data folder")
        draft = self.folder / "data.draft"
        shutil.rmtree(draft, ignore_errors=True)
        # The superuser has no password: only its own system user gets in, through the socket.
        argv = [
            str(programs / "initdb"),
            "-D",
            str(draft),
            "-U",
            account.name,
            "--auth-local=peer",
            "--auth-host=scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--data-checksums",
        ]
        run_logged(
            account.command(argv),
            self.places.log("initdb"),
            INITDB_SECONDS,
            folder=Path("/"),
            env=bare_environment(self.folder),
        )
        draft.rename(self.data)

    def _check_version(self, programs: Path) -> None:
        written_by = (self.data / "PG_VERSION").read_text().strip()
        if written_by != _major_version(programs):
            raise EnginesError(
                f"{self.data} was made by PostgreSQL {written_by}, but {programs} is another version; "
                "run `scripts/engines reset` to start with empty data"
            )


def find_programs() -> Path | None:
    """Debian keeps the server programs of each version off PATH; take the newest."""
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if installed:
        return max(installed, key=lambda folder: int(folder.parent.name))
    program = shutil.which("postgres")
    return Path(program).resolve().parent if program else None


def _programs() -> Path:
    programs = find_programs()
    if programs is None:
        raise EnginesError("the PostgreSQL server programs are gone; run `scripts/engines start` again")
    return programs


def _major_version(programs: Path) -> str:
    output = subprocess.check_output([programs / "postgres", "--version"], text=True, timeout=30)
    match = re.search(r"\d+", output)
    if match is None:
        raise EnginesError(f"{programs / 'postgres'} does not print its version")
    return match.group()


def _install(log: Path) -> Path:
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        raise EnginesError(
            "the PostgreSQL server is not installed; on Debian or Ubuntu run: "
            "sudo apt-get update && sudo apt-get install -y postgresql"
        )
    say("installing PostgreSQL with apt-get")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run_logged([apt, "update"], log, INSTALL_SECONDS, env=env)
    run_logged([apt, "install", "-y", "postgresql-common"], log, INSTALL_SECONDS, env=env)
    _disable_system_cluster()
    run_logged([apt, "install", "-y", "postgresql"], log, INSTALL_SECONDS, env=env)
    return _programs()


def _disable_system_cluster() -> None:
    """Debian's package otherwise makes and starts a server of its own on port 5432."""
    settings = Path("/etc/postgresql-common/createcluster.conf")
    with settings.open("a") as opened:
        opened.write("\ncreate_main_cluster = false\n")
    say(f"wrote create_main_cluster = false to {settings}")
