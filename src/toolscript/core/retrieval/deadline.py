"""Deadlines, which failure leads to which fallback, and work that is given up when time is over."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from toolscript.core.errors import Overloaded, Rejected, SetupError, Unavailable

T = TypeVar("T")

# Given up on, and not yet gone: a driver may take seconds to take back what it has sent.
_abandoned: set[asyncio.Task[Any]] = set()

RETRY_AFTER_SECONDS = 1

# Whether more searches came than this service can do, in the last so many seconds.
IsOverloaded = Callable[[float], bool]

logger = logging.getLogger(__name__)


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    async def spend(self, share: float, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the work for at most this share of what is left; then TimeoutError, at once."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self.left * share)
        finally:
            if not task.done():
                _abandon(task)
        if not task.done():
            raise TimeoutError("no answer in time")
        try:
            return task.result()
        finally:
            # A failure holds its frames, and this frame the task: a circle, unless it is cut here.
            del task


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()


class Part(StrEnum):
    EMBEDDING = "embedding"
    SKILLS = "skills"
    INDEX = "index"
    SCHEMAS = "schemas"
    RERANK = "rerank"


def never_overloaded(_seconds: float) -> bool:
    return False


def overloaded() -> Overloaded:
    return Overloaded(
        "the service has more to do than it can at this moment",
        hint=f"try again in {RETRY_AFTER_SECONDS} second",
        details={"retry_after_seconds": RETRY_AFTER_SECONDS},
    )


SHARE_OF_TIME_LEFT = {Part.EMBEDDING: 0.5, Part.SKILLS: 0.25, Part.INDEX: 0.9, Part.SCHEMAS: 1.0, Part.RERANK: 0.5}


@dataclass
class Attempt:
    """Runs the parts of one request and remembers which of them failed."""

    deadline: Deadline
    failed: list[Part] = field(default_factory=list)
    is_overloaded: IsOverloaded = never_overloaded

    @property
    def parts_failed(self) -> tuple[str, ...]:
        """In the order of the table."""
        return tuple(part.value for part in Part if part in self.failed)

    async def or_else(self, part: Part, work: Coroutine[Any, Any, T], fallback: T) -> T:
        try:
            return await self.deadline.spend(SHARE_OF_TIME_LEFT[part], work)
        except (Unavailable, Rejected, SetupError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("search degraded", extra={"part": part.value, "reason": reason})
            if part not in self.failed:
                self.failed.append(part)
            return fallback

    def require_something(self, found: object) -> None:
        """At the end of a search: raises Overloaded where it found nothing and that is our own fault."""
        if found or not self.failed or not self.is_overloaded(self.deadline.seconds):
            return
        raise overloaded()


async def run_on_daemon_thread(work: Callable[[], T]) -> T:
    """Like `asyncio.to_thread`, whose threads a program waits for when it ends, however long they take."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not result.done():
            set_it()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            failure = error
            answer: Callable[[], None] = lambda: result.set_exception(failure)  # noqa: E731
        else:
            answer = lambda: result.set_result(value)  # noqa: E731
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, answer)

    threading.Thread(target=run, daemon=True).start()
    return await result
