"""Opens a file that is nothing but a file, and not behind a link: whoever puts one there chooses what is read."""

import os
import stat
from pathlib import PurePosixPath

from toolscript.adapters.source_files.skipping import skip

# A pipe or a device is never waited for, and no terminal becomes ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISLNK, "it is a symbolic link"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)


def open_file(path: str) -> int:
    """Its descriptor. Folder by folder, so that none of them can become a link on the way."""
    parts = PurePosixPath(path)
    if not parts.is_absolute() or ".." in parts.parts:
        skip("its path is not a full one")
    folder = os.open("/", _FOLDER)
    try:
        for name in parts.parts[1:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _opened(parts.name, folder)
    except FileNotFoundError:
        skip("it is not there")
    except PermissionError:
        skip("it may not be read", "give whoever runs this the right to read it")
    except NotADirectoryError:
        skip("it lies behind a symbolic link", "give the path that the link leads to")
    except (OSError, ValueError) as error:
        skip(f"it cannot be opened: {getattr(error, 'strerror', None) or error}")
    finally:
        os.close(folder)


def _opened(name: str, folder: int) -> int:
    _check(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        # It may have become something else since it was looked at.
        _check(os.fstat(file).st_mode)
        return file
    except BaseException:
        os.close(file)
        raise


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        skip(next((reason for is_kind, reason in _KINDS if is_kind(mode)), "it is no file"))
