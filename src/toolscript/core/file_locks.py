"""Locks on files. The system releases one when its process ends, however that ends: a pid may be reused."""

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def take(lock: IO[bytes], *, shared: bool = False) -> bool:
        del shared
        try:
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def take(lock: IO[bytes], *, shared: bool = False) -> bool:
        """Try to take the lock. Closing the file, or the end of the process, releases it.

        Shared: processes that only check whether another holds it do not mistake each other for its holder.
        """
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
