"""A server in several processes that take connections from one socket."""

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from toolscript.errors import SetupError
from toolscript.service.http_server import ENDING_SIGNALS

LOOK_EVERY_SECONDS = 0.1
# One that lived so long did not die of how it starts.
LONG_LIFE_SECONDS = 30.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0

# What a process does; it calls what it is given once it answers requests.
Work = Callable[[Callable[[], None]], None]

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
        self.next_at, self.pause = now + self.pause, min(self.pause * 2, LONGEST_PAUSE_SECONDS)
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
