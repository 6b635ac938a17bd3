"""A server in several processes on one socket; its event loop, and the file of a Unix socket."""

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
# One that lived so long did not die of how it starts.
LONG_LIFE_SECONDS = 30.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 30.0

# What a process does; it calls what it is given once it answers requests.
Work = Callable[[Callable[[], None]], None]

T = TypeVar("T")
SOON_SECONDS = 1.0

logger = logging.getLogger(__name__)


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


def in_processes(count: int, work: Work, shared: Sequence[socket.socket], *, end_seconds: float) -> None:
    """One that dies is replaced; when none could ever start, all end, and the command fails."""
    if not hasattr(os, "fork"):
        raise SetupError("this system has no fork", hint="set TOOLSCRIPT_PROCESSES=1, and start several servers")
    keeper = _Keeper(count, shared, end_seconds)
    if keeper.keep():
        return
    # A process of its own: it returns from here as the command does.
    keeper.be(work)


@dataclass
class _Keeper:
    """`started` is a pipe: a process writes a byte into it once it answers."""

    count: int
    shared: Sequence[socket.socket]
    end_seconds: float
    started: tuple[int, int] = field(default_factory=os.pipe)
    # When each began.
    children: dict[int, float] = field(default_factory=dict)
    is_told: bool = False
    has_started: bool = False
    pause: float = FIRST_PAUSE_SECONDS
    next_at: float = 0.0

    def keep(self) -> bool:
        """False in a process that was forked."""
        for sign in ENDING_SIGNALS:
            if signal.getsignal(sign) is not signal.SIG_IGN:
                signal.signal(sign, self._tell)
        for _ in range(self.count):
            if not self._fork():
                return False
        while not self.is_told:
            self._look()
            if len(self.children) < self.count and time.monotonic() >= self.next_at and not self.is_told:
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
        # Held back until a new process has forgotten that it was a keeper.
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

    def _look(self) -> None:
        if select.select([self.started[0]], [], [], 0)[0]:
            self.has_started = bool(os.read(self.started[0], 4096))
        for child in list(self.children):
            gone, status = os.waitpid(child, os.WNOHANG)
            if gone:
                self._lost(child, status)

    def _lost(self, child: int, status: int) -> None:
        now, lived = time.monotonic(), time.monotonic() - self.children.pop(child)
        if self.is_told:
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
        for one in self.shared:
            one.close()

    def _tell(self, *_: object) -> None:
        """The socket goes first: what nobody takes from it any more would be let in, and then be reset."""
        self.is_told = True
        self._stop_listening()
        _tell(self.children)

    def _end(self) -> None:
        """In the end without being asked."""
        self._stop_listening()
        left = set(self.children)
        ends_at = time.monotonic() + self.end_seconds
        _tell(left)
        while left and time.monotonic() < ends_at:
            time.sleep(LOOK_EVERY_SECONDS)
            left -= {child for child in left if os.waitpid(child, os.WNOHANG)[0]}
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _tell(children: Iterable[int]) -> None:
    for child in list(children):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Where there is a faster event loop than Python's own, it is used."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", log_config=None).get_loop_factory()) as runner:
        return runner.run(main)


def raise_gc_thresholds() -> None:
    """A search leaves hardly any circles behind, and looking for them stops all searches for a while.

    What is there at the start stays, and is never looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


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
