"""How this installation is started: the command that an autostart and a client's config name."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from toolscript.core.embedding.model_runtime import is_installed

SCRIPT = "toolscript.exe" if sys.platform == "win32" else "toolscript"
# Folders of uv's cache in which `uvx` runs programs. It clears them as it likes. UV_CACHE_DIR gives it any name.
UVX_FOLDERS = ("archive-v", "environments-v")
CACHE_TAG = "CACHEDIR.TAG"


def program_command() -> tuple[str, ...]:
    """Return the command with its whole path; under `uvx` that of uvx, because this environment will go."""
    if _is_of_uvx(Path(sys.prefix)) and (uvx := shutil.which("uvx")):
        package = ("--from", "toolscript[model]") if is_installed() else ()
        return (uvx, *package, "toolscript")
    script = Path(sys.executable).with_name(SCRIPT)
    if script.is_file():
        return (str(_on_the_path(script)),)
    return (sys.executable, "-m", "toolscript")


def _on_the_path(script: Path) -> Path:
    """Prefer the link that an installer made to this very script: it stays when the installation moves."""
    found = shutil.which("toolscript")
    if found is not None and Path(found).resolve() == script.resolve():
        return Path(found).absolute()
    return script


def _is_of_uvx(prefix: Path) -> bool:
    caches = [path.parent for path in (prefix, *prefix.parents) if path.name.startswith(UVX_FOLDERS)]
    return any("uv" in cache.parts or (cache / CACHE_TAG).is_file() for cache in caches)


def search_path(environment: Mapping[str, str]) -> str:
    """Return the PATH of now without folders that will go: the programs of MCP servers are found through it."""
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    lasting = [entry for entry in entries if Path(entry).is_absolute() and not _is_of_uvx(Path(entry))]
    return os.pathsep.join(dict.fromkeys(lasting))
