"""Safe opening of the user's own files. Checks run on the open descriptor: the path may change meanwhile."""

import errno
import os
import stat
from pathlib import Path

# Never block on a pipe or a device, nor acquire a controlling terminal. Not every system has all flags.
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700


class NotRegular(OSError):
    """The path is not a regular file; `mode` distinguishes a pipe from a device."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file")
        self.mode = mode


def open_regular(path: Path | str, *, follow_links: bool, dir_fd: int | None = None) -> int:
    """Return a descriptor for reading a regular file; a folder raises IsADirectoryError, as with `open`.

    `follow_links` is for files that users keep elsewhere and link to. Without it a link is refused (ELOOP), for
    folders where other users could have placed one. `dir_fd` is the open parent folder of a relative path.
    """
    descriptor = os.open(path, _READ | (0 if follow_links else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise NotRegular(mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_private(folder: Path) -> None:
    """Make the folder and those above it that are missing, readable by this user alone."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def private(path: str, flags: int) -> int:
    """Open a file, which is readable by this user alone if it is new: an `opener`."""
    return os.open(path, flags, PRIVATE)


def is_own(status: os.stat_result, *, or_root: bool = True) -> bool:
    """Return whether this user owns the file; always true on systems without owners.

    `or_root` also accepts root, which can do what this user can and writes config for all users of a machine.
    """
    user = getattr(os, "geteuid", None)
    return user is None or status.st_uid == user() or (or_root and status.st_uid == 0)


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, from its creation on."""
    new = path.with_suffix(f".{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with open(new, "x", encoding="utf-8", opener=private) as file:
        file.write(text)
    new.replace(path)


def read_own_file(path: Path) -> str:
    """Read a file of this user only: its content decides where requests and their token are sent."""
    with os.fdopen(open_regular(path, follow_links=True), "r", encoding="utf-8") as file:
        if not is_own(os.fstat(file.fileno())):
            raise PermissionError(f"{path} belongs to another user")
        return file.read()
