"""Writing a config file: as a whole or not at all, with the old one kept beside it."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from toolscript.adapters.config_files.jsonc import read_text
from toolscript.errors import ConfigInvalid

PRIVATE = 0o600


def replace_text(path: Path, before: str | None, after: str, *, backup: Path, mode: int | None = None) -> None:
    """Writes `after` if the file still says `before`. A mode that is not given stays, or is private."""
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    # A link stays a link: the file it leads to is the one to write.
    real = path.resolve()
    try:
        kept = stat.S_IMODE(real.stat().st_mode) if before is not None else PRIVATE
        if before is not None:
            write_file(backup, before, PRIVATE)
        write_file(real, after, kept if mode is None else mode)
    except OSError as error:
        raise ConfigInvalid(
            f"cannot write {path}: {error.strerror}", hint="check who may write there, and the space left"
        ) from None


def remove(path: Path, before: str | None) -> None:
    """Takes the file away if it still says `before`."""
    if read_text(path) != before:
        raise ConfigInvalid(f"{path} was changed in the meantime", hint="run the command again")
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigInvalid(f"cannot remove {path}: {error.strerror}", hint="remove it by hand") from None


def write_file(path: Path, text: str, mode: int = PRIVATE) -> None:
    """A reader sees the file as it was or as it is now."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The new name is on the disk too. Windows cannot open folders, and needs no such thing."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
