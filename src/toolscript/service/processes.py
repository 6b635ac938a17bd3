"""A server in several processes that take connections from one socket."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from toolscript.errors import SetupError

PATIENCE_SECONDS = 20.0


def bound(host: str, port: int) -> socket.socket:
    """Bound and not yet listening: nobody is let in before the first process can answer."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound_to = socket.socket(family, socket.SOCK_STREAM)
    bound_to.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound_to.bind((host, port))
    except OSError as error:
        bound_to.close()
        raise SetupError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="choose another `--port`, or end who has it"
        ) from error
    bound_to.set_inheritable(True)
    return bound_to


def in_processes(count: int, work: Callable[[], None]) -> None:
    """When one of them ends by itself, all do: whoever watches over them sees it, and starts them anew."""
    if not hasattr(os, "fork"):
        raise SetupError("this system has no fork", hint="set TOOLSCRIPT_PROCESSES=1, and start several servers")
    children: list[int] = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            work()
            return
        children.append(child)
    _watch(children)


def _watch(children: Sequence[int]) -> None:
    told = False

    def tell(*_: object) -> None:
        nonlocal told
        told = True
        _tell(children)

    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, tell)
    first, _status = os.wait()
    _end([child for child in children if child != first])
    if not told:
        raise SetupError("one of the server's processes ended by itself", hint="see its log above")


def _end(children: Sequence[int]) -> None:
    """Told again and again: one that is just starting may not listen yet. In the end without being asked."""
    left = set(children)
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while left and time.monotonic() < ends_at:
        _tell(left)
        time.sleep(0.1)
        left -= {child for child in left if os.waitpid(child, os.WNOHANG)[0]}
    for child in left:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _tell(children: Iterable[int]) -> None:
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
