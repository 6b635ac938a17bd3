"""Files that are there as a whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_whole(path: Path, data: object) -> None:
    """A reader sees the file as it was or as it is now, whenever it looks and whoever dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_whole(path: Path) -> Any:
    """What `write_whole` wrote; ValueError when it is something else."""
    try:
        return json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ValueError("nested without end") from None


def set_aside(path: Path, label: str) -> None:
    """Out of the way, and kept for whoever wants to look at it."""
    path.replace(path.with_name(f"{path.name}.{label}"))
