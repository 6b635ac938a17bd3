"""Several server processes on one socket, their event loop, and the Unix socket file."""

import asyncio
import gc
import logging
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from toolscript.core.errors import SetupError
from toolscript.server.http_protocol import ENDING_SIGNALS

LOOK_EVERY_SECONDS = 0.1
# A process that lived this long did not fail at startup.
LONG_LIFE_SECONDS = 30.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 30.0

# The work of a process. It calls its argument once it accepts requests.
Work = Callable[[Callable[[], None]], None]

T = TypeVar("T")
SOON_SECONDS = 1.0

logger = logging.getLogger(__name__)


def bound(host: str, port: int) -> socket.socket:
    """Return a bound socket that does not listen yet: no connection is accepted before a process can serve it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound_to = socket.socket(family, socket.SOCK_STREAM)
    bound_to.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound_to.bind((host, port))
    except OSError as error:
        bound_to.close()
        raise SetupError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another `--port`, or stop the process that uses it",
        ) from error
    bound_to.set_inheritable(True)
    return bound_to


def run_in_processes(count: int, work: Work, shared: Sequence[socket.socket], *, end_seconds: float) -> None:
    """Keep `count` processes running. Raise if the first one fails before any has started."""
    if not hasattr(os, "fork"):
        raise SetupError("this system has no fork", hint="set TOOLSCRIPT_PROCESSES=1, and start several servers")
    keeper = _Keeper(count, shared, end_seconds)
    if keeper.keep():
        return
    # In the child process: it returns from here as the command does.
    keeper.be(work)


@dataclass
class _Keeper:
    """Parent of the processes. `started` is a pipe: a process writes a byte to it once it accepts requests."""

    count: int
    shared: Sequence[socket.socket]
    end_seconds: float
    started: tuple[int, int] = field(default_factory=os.pipe)
    # Start time by process id.
    children: dict[int, float] = field(default_factory=dict)
    is_ending: bool = False
    has_started: bool = False
    pause: float = FIRST_PAUSE_SECONDS
    next_at: float = 0.0

    def keep(self) -> bool:
        """Run until a signal. Return False in a forked process."""
        for sign in ENDING_SIGNALS:
            if signal.getsignal(sign) is not signal.SIG_IGN:
                signal.signal(sign, self._on_signal)
        for _ in range(self.count):
            if not self._fork():
                return False
        while not self.is_ending:
            self._check_children()
            if len(self.children) < self.count and time.monotonic() >= self.next_at and not self.is_ending:
                logger.info("a process of the server is replaced", extra={"part": "processes"})
                if not self._fork():
                    return False
            time.sleep(LOOK_EVERY_SECONDS)
        self._end()
        return True

    def be(self, work: Work) -> None:
        os.close(self.started[0])

        def on_started() -> None:
            os.write(self.started[1], b".")

        work(on_started)

    def _fork(self) -> bool:
        # Block signals until the child has reset the handlers of its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
        try:
            child = os.fork()
            if child:
                self.children[child] = time.monotonic()
                return True
            self.children.clear()
            for sign in ENDING_SIGNALS:
                if signal.getsignal(sign) is not signal.SIG_IGN:
                    signal.signal(sign, signal.SIG_DFL)
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)

    def _check_children(self) -> None:
        if select.select([self.started[0]], [], [], 0)[0]:
            self.has_started = bool(os.read(self.started[0], 4096))
        for child in list(self.children):
            gone, status = os.waitpid(child, os.WNOHANG)
            if gone:
                self._on_exit(child, status)

    def _on_exit(self, child: int, status: int) -> None:
        now, lived = time.monotonic(), time.monotonic() - self.children.pop(child)
        if self.is_ending:
            return
        code = os.waitstatus_to_exitcode(status)
        if not self.has_started:
            self._end()
            raise SetupError(
                f"a process of the server could not start: it ended with {code}", hint="see its log above"
            )
        self.pause = FIRST_PAUSE_SECONDS if lived > LONG_LIFE_SECONDS else self.pause
        self.next_at, self.pause = now + self.pause, min(self.pause * 2, MAX_PAUSE_SECONDS)
        facts = {"part": "processes", "exit_code": code, "lived_seconds": round(lived, 1)}
        logger.warning("a process of the server ended by itself", extra=facts)

    def _stop_listening(self) -> None:
        for shared_socket in self.shared:
            shared_socket.close()

    def _on_signal(self, *_: object) -> None:
        """Stop all processes. Close the socket first: connections in its backlog would be accepted, then reset."""
        self.is_ending = True
        self._stop_listening()
        _terminate(self.children)

    def _end(self) -> None:
        """Terminate the processes, and kill those that do not end in time."""
        self._stop_listening()
        left = set(self.children)
        ends_at = time.monotonic() + self.end_seconds
        _terminate(left)
        while left and time.monotonic() < ends_at:
            time.sleep(LOOK_EVERY_SECONDS)
            left -= {child for child in left if os.waitpid(child, os.WNOHANG)[0]}
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _terminate(children: Iterable[int]) -> None:
    for child in list(children):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop if it is installed."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", log_config=None).get_loop_factory()) as runner:
        return runner.run(main)


def raise_gc_thresholds() -> None:
    """Keep garbage collection out of the tail latency: requests create few reference cycles.

    Objects that exist at startup are frozen, and never scanned again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    gc.enable()


@contextmanager
def bind_unix_socket(path: str, mode: str) -> Iterator[socket.socket]:
    """Bind a Unix socket that does not listen yet. Only the process that created the file removes it."""
    owner, file = os.getpid(), Path(path)
    _remove_stale(file)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Set by umask: a later chmod would leave a moment with the wrong mode.
    previous_umask = os.umask(0o777 & ~int(mode, 8))
    try:
        bound.bind(path)
    except OSError as error:
        bound.close()
        raise _unusable(file, error.strerror or str(error)) from error
    finally:
        os.umask(previous_umask)
    bound.set_inheritable(True)
    try:
        yield bound
    finally:
        bound.close()
        if os.getpid() == owner:
            file.unlink(missing_ok=True)


def _remove_stale(file: Path) -> None:
    """Remove the file that a killed server left behind. Raise if it is in use or not a socket."""
    try:
        kind = file.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise _unusable(file, "the file exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(SOON_SECONDS)
        try:
            client.connect(str(file))
        except ConnectionRefusedError:
            with suppress(FileNotFoundError):
                file.unlink()
        except OSError as error:
            raise _unusable(file, error.strerror or str(error)) from error
        else:
            raise _unusable(file, "another process listens there")


def _unusable(file: Path, reason: str) -> SetupError:
    return SetupError(
        f"cannot listen on {file}: {reason}",
        hint="choose another `--socket`, in an existing folder that is writable",
    )
