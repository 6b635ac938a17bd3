"""Debian's nginx: the installed one, or one unpacked into our own folder, where nothing starts it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SECONDS = 300
BESIDE = "/usr/sbin"


def nginx_program() -> str:
    installed = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:{BESIDE}")
    return installed or _unpacked()


def _unpacked() -> str:
    """Unpack once for all clones and test runs on a machine."""
    folder = Path(tempfile.gettempdir()) / f"toolscript-nginx-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    program = folder / "nginx" / "usr" / "sbin" / "nginx"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _download(folder)
            draft = folder / "draft"
            _run(folder, "dpkg-deb", "-x", *map(str, folder.glob("nginx_*.deb")), str(draft))
            draft.rename(folder / "nginx")
    return str(program)


def _download(folder: Path) -> None:
    """Download the package. The package lists may be missing; updating them requires root."""
    try:
        _run(folder, "apt-get", "download", "nginx")
    except RuntimeError:
        _run(folder, *([] if os.getuid() == 0 else ["sudo", "-n"]), "apt-get", "update")
        _run(folder, "apt-get", "download", "nginx")


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed; install nginx-light: {done.stderr[-2_000:]}")
