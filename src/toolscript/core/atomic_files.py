"""JSON files that are replaced atomically."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json_atomically(path: Path, data: object) -> None:
    """Write JSON atomically: a reader sees the old file or the new one, even if this process dies."""
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


def read_json(path: Path) -> Any:
    """Read JSON that `write_json_atomically` wrote; raise ValueError for anything else."""
    try:
        return json.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def set_aside(path: Path, label: str) -> None:
    """Rename the file out of the way and keep it for inspection."""
    path.replace(path.with_name(f"{path.name}.{label}"))
