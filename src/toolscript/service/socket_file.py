"""A Unix socket to listen on: its file says who may come in."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolscript.errors import SetupError

SOON_SECONDS = 1.0


@contextmanager
def bound_file(path: str, mode: str) -> Iterator[socket.socket]:
    """Bound and not yet listening. Whoever made the file removes it at the end; processes it has forked do not."""
    owner, file = os.getpid(), Path(path)
    _clear(file)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # From its first moment on: a mode that is given later comes too late.
    before = os.umask(0o777 & ~int(mode, 8))
    try:
        bound.bind(path)
    except OSError as error:
        bound.close()
        raise _unusable(file, error.strerror or str(error)) from error
    finally:
        os.umask(before)
    bound.set_inheritable(True)
    try:
        yield bound
    finally:
        bound.close()
        if os.getpid() == owner:
            file.unlink(missing_ok=True)


def _clear(file: Path) -> None:
    """A server that was killed leaves its file behind, and nobody answers there."""
    try:
        kind = file.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise _unusable(file, "there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(SOON_SECONDS)
        try:
            asking.connect(str(file))
        except ConnectionRefusedError:
            with suppress(FileNotFoundError):
                file.unlink()
        except OSError as error:
            raise _unusable(file, error.strerror or str(error)) from error
        else:
            raise _unusable(file, "somebody listens there")


def _unusable(file: Path, reason: str) -> SetupError:
    return SetupError(
        f"cannot listen on {file}: {reason}",
        hint="choose another `--socket`, in a folder that is there and can be written to",
    )
