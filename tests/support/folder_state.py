"""What a folder holds, byte for byte: files, links, folders and who may read them."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def folder_state(folder: Path) -> dict[str, str]:
    """Return each path in the folder with its mode and a hash of its content, or the target of a link."""
    return dict(_entries(folder))


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    for base, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(base) / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = f"-> {path.readlink()}"
            elif stat.S_ISREG(mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content = "folder"
            yield str(path.relative_to(folder)), f"{stat.filemode(mode)} {content}"
