"""SecantusDB in a virtual environment of its own, installed by hash and sealed."""

import shutil
import subprocess
import sys
from pathlib import Path

from .accounts import unprivileged_account
from .downloads import FETCH_SECONDS, sha256_of, sha256_of_tree
from .messages import EnginesError, say
from .places import Places
from .processes import run_logged

VERSION = "0.7.0b3"
LOCK = Path(__file__).with_name("secantus.lock")
PYTHONS = ("3.11", "3.12", "3.13")


def install_if_missing(places: Places) -> None:
    environment = _environment(places)
    if not environment.exists():
        _install(environment, places.log("download"))


def arguments(places: Places, port: int, folder: Path) -> list[str]:
    program = _verified(places) / "bin" / "secantusd-py"
    return [str(program), "--host", "127.0.0.1", "--port", str(port), "--storage-path", str(folder)]


def _verified(places: Places) -> Path:
    environment = _environment(places)
    if environment.exists() and not _is_intact(environment):
        say(f"{environment} is incomplete or was changed; installing it again")
        shutil.rmtree(environment)
    install_if_missing(places)
    return environment


def _environment(places: Places) -> Path:
    # Named by the lock, so that another pin builds another environment.
    return places.downloads / f"secantusdb-{VERSION}-{sha256_of(LOCK)[:8]}"


def _install(environment: Path, log: Path) -> None:
    say(f"installing SecantusDB {VERSION}")
    python = _reachable_python()
    run_logged([python, "-m", "venv", "--without-pip", str(environment)], log, FETCH_SECONDS)
    run_logged(
        [
            *_pip(python),
            "--python",
            str(environment / "bin" / "python"),
            "install",
            "--quiet",
            "--no-input",
            "--root-user-action=ignore",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "-r",
            str(LOCK),
        ],
        log,
        FETCH_SECONDS,
    )
    _seal(environment).write_text(sha256_of_tree(environment))


def _is_intact(environment: Path) -> bool:
    seal = _seal(environment)
    return seal.exists() and seal.read_text() == sha256_of_tree(environment)


def _seal(environment: Path) -> Path:
    return environment.with_name(f"{environment.name}.sha256")


def _reachable_python() -> str:
    """An interpreter the server's user may run: root's own can sit in a folder closed to others."""
    account = unprivileged_account()
    check = f"import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] not in {PYTHONS})"
    on_path = [shutil.which(f"python{version}") for version in PYTHONS]
    candidates = [sys.executable, "/usr/bin/python3", "/usr/local/bin/python3", *filter(None, on_path)]
    for candidate in candidates:
        real = str(Path(candidate).resolve())
        if account.can([real, "-c", check]):
            return real
    raise EnginesError(f"SecantusDB needs a Python {', '.join(PYTHONS)} that the user {account.name} can run")


def _pip(python: str) -> list[str]:
    for interpreter in (sys.executable, python):
        command = [interpreter, "-m", "pip"]
        result = subprocess.run([*command, "--version"], check=False, capture_output=True, timeout=60)
        if result.returncode == 0:
            return command
    raise EnginesError(f"{sys.executable} has no pip to install SecantusDB with (on Debian: python3-pip)")
