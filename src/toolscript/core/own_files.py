"""Files of the user's own. What is checked is what was opened: a name may stand for another file by then."""

import errno
import os
import stat
from pathlib import Path

# A pipe or a device is never waited for, and no terminal becomes ours. Not every system knows all of them.
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


class NotRegular(OSError):
    """`mode` says what it is: a pipe, a device."""

    def __init__(self, mode: int) -> None:
        super().__init__(errno.EINVAL, "it is no file")
        self.mode = mode


def open_regular(path: Path | str, *, follow_links: bool, dir_fd: int | None = None) -> int:
    """The descriptor of a regular file, to be read; a folder is refused as `open` does.

    `follow_links` is for files that people keep elsewhere and link to; without it a link is refused (ELOOP), for
    files that lie where others could have put one. `dir_fd` is the folder of a path that was walked step by step.
    """
    opened = os.open(path, _READ | (0 if follow_links else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise NotRegular(mode)
    except BaseException:
        os.close(opened)
        raise
    return opened


def is_own(status: os.stat_result, *, or_root: bool = True) -> bool:
    """Of this user. Where the system knows no owners every file is.

    `or_root`: root can do what this user can, and writes config for all users of a machine.
    """
    user = getattr(os, "geteuid", None)
    return user is None or status.st_uid == user() or (or_root and status.st_uid == 0)
