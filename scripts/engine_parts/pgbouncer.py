"""PgBouncer in transaction mode in front of PostgreSQL: all clients of a database share four sessions."""

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .accounts import unprivileged_account
from .messages import EnginesError, say
from .places import Places
from .processes import Launch, run_logged

INSTALL_SECONDS = 900
POOL_SIZE = 4
# Debian's folder for servers is not always on the PATH.
SYSTEM_BINARY = Path("/usr/sbin/pgbouncer")


@dataclass(frozen=True)
class PgBouncer:
    """`before` is the URL of a PostgreSQL, with the user and the password for both sides."""

    places: Places
    before: str
    name: str = "pgbouncer"
    stop_signal: signal.Signals = signal.SIGINT

    def prepare(self) -> None:
        if _binary() is None:
            _install(self.places.log("install"))

    def launch(self, port: int) -> Launch:
        binary = _binary()
        if binary is None:
            raise EnginesError("PgBouncer is gone; on Debian or Ubuntu run: sudo apt-get install -y pgbouncer")
        account = unprivileged_account()
        folder = account.own_folder(self.places.home / self.name)
        address = urlsplit(self.before)
        config, users = folder / "pgbouncer.ini", folder / "users.txt"
        users.write_text(f'"{address.username}" "{address.password}"\n')
        config.write_text(_config(f"host={address.hostname} port={address.port}", port, users))
        for file in (config, users):
            shutil.chown(file, account.uid, account.gid)
        return Launch([binary, str(config)], account, folder, self.places.log(self.name), "PgBouncer")


def _binary() -> str | None:
    return shutil.which("pgbouncer") or (str(SYSTEM_BINARY) if SYSTEM_BINARY.exists() else None)


def _install(log: Path) -> None:
    apt = shutil.which("apt-get")
    if os.geteuid() != 0 or apt is None:
        raise EnginesError(
            "PgBouncer is not installed; on Debian or Ubuntu run: "
            "sudo apt-get update && sudo apt-get install -y pgbouncer"
        )
    say("installing PgBouncer with apt-get")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run_logged([apt, "update"], log, INSTALL_SECONDS, env=env)
    run_logged([apt, "install", "-y", "--no-install-recommends", "pgbouncer"], log, INSTALL_SECONDS, env=env)


def _config(target: str, port: int, users: Path) -> str:
    lines = [
        "[databases]",
        f"* = {target}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = scram-sha-256",
        f"auth_file = {users}",
        "pool_mode = transaction",
        f"default_pool_size = {POOL_SIZE}",
        "max_client_conn = 1000",
        # A log line for each of thousands of connections is noise.
        "log_connections = 0",
        "log_disconnections = 0",
    ]
    return "\n".join(lines) + "\n"
