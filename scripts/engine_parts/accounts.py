"""Account that a server runs as: never root, and the current user unless that is root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .messages import EnginesError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def command(self, argv: Sequence[str]) -> list[str]:
        if os.geteuid() == self.uid:
            return list(argv)
        ids = [f"--reuid={self.uid}", f"--regid={self.gid}"]
        return ["setpriv", *ids, "--clear-groups", "--no-new-privs", "--", *argv]

    def can(self, argv: Sequence[str]) -> bool:
        finished = subprocess.run(
            self.command(argv),
            check=False,
            env=bare_environment(Path("/")),
            cwd="/",
            timeout=30,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return finished.returncode == 0

    def own_folder(self, folder: Path) -> Path:
        """Make `folder` private to this account."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() != self.uid:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)
        if not self.can(["test", "-w", str(folder)]):
            raise EnginesError(
                f"the user {self.name} cannot reach {folder}; "
                "set TOOLSCRIPT_ENGINES_DIR to a folder below ones that everyone may enter"
            )
        return folder


def bare_environment(home: Path) -> dict[str, str]:
    """Return a clean environment: inherited QDRANT__* or PG* variables would override our settings."""
    return {
        "PATH": SYSTEM_PATH,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def unprivileged_account() -> Account:
    return _account("nobody") if os.geteuid() == 0 else _current_user()


def postgres_account() -> Account:
    return _account("postgres") if os.geteuid() == 0 else _current_user()


def _account(name: str) -> Account:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise EnginesError(f"this machine has no user {name} to run a server as") from None
    return Account(name, entry.pw_uid, entry.pw_gid)


def _current_user() -> Account:
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise EnginesError(
            f"user id {os.geteuid()} has no name in /etc/passwd; PostgreSQL refuses to run without one"
        ) from None
    return Account(name, os.geteuid(), os.getegid())
