"""Deadlines, the parts of a search with the table of their fallbacks, and work that is abandoned at a timeout."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from toolscript.core.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    Overloaded,
    Rejected,
    SetupError,
    Unavailable,
)

T = TypeVar("T")

# Cancelled tasks that still run: a driver may take seconds to cancel what it has sent.
_abandoned: set[asyncio.Task[Any]] = set()

RETRY_AFTER_SECONDS = 1

logger = logging.getLogger(__name__)


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    async def spend(self, share: float, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work for at most this share of the time left, then raise TimeoutError at once."""
        loop = asyncio.get_running_loop()
        task, ended = loop.create_task(work), loop.create_future()

        def end(_: object = None) -> None:
            if not ended.done():
                ended.set_result(None)

        # `asyncio.wait` does the same in twice the time.
        timer = loop.call_later(self.left * share, end)
        task.add_done_callback(end)
        try:
            await ended
        finally:
            timer.cancel()
            if not task.done():
                _abandon(task)
        if not task.done():
            raise TimeoutError("no answer in time")
        try:
            return task.result()
        finally:
            # An exception references its frames, and this frame the task: break the reference cycle.
            del task


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_discard)


def _discard(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()


# When a part fails or takes too long, the caller of `Attempt.or_else` continues with its fallback. A search that
# finds nothing then, because what finds it failed, is an error (`Attempt.require_found`):
#
# | part      | fallback                                                       | where                  |
# |-----------|----------------------------------------------------------------|------------------------|
# | EMBEDDING | sparse retrieval alone; with `semantic` an error               | tools/search.py        |
# | EMBEDDING | sparse retrieval alone                                         | documents/retrieval.py |
# | EMBEDDING | sparse retrieval alone; with `semantic` an error               | knowledge/retrieval.py |
# | SKILLS    | no matched skills: a search of all items, without a filter     | tools/search.py        |
# | INDEX     | the results of the other search, direct or by skills           | tools/item_stage.py    |
# | INDEX     | the cached payloads only                                       | tools/payload_cache.py |
# | INDEX     | no explanation of an absent item                               | tools/why_not.py       |
# | INDEX     | the other collection; an error if all fail; terms without IDFs | knowledge/retrieval.py |
# | CATALOG   | removed items stay until the index has followed                | tools/search.py        |
# | SCHEMAS   | hits without schemas                                           | tools/hydration.py     |
# | RERANK    | the order of the fusion                                        | documents/rerank.py    |
# | CURATION  | no rules; only as long as they have not been read once         | tools/curation.py      |
# | SPELLING  | the words as they are written                                  | tools/search.py        |
class Part(StrEnum):
    EMBEDDING = "embedding"
    SKILLS = "skills"
    INDEX = "index"
    CATALOG = "catalog"
    SCHEMAS = "schemas"
    RERANK = "rerank"
    CURATION = "curation"
    SPELLING = "spelling"


def overloaded() -> Overloaded:
    return Overloaded(
        "the service is overloaded at this moment",
        hint=f"try again in {RETRY_AFTER_SECONDS} second",
        details={"retry_after_seconds": RETRY_AFTER_SECONDS},
    )


SHARE_OF_TIME_LEFT = {
    Part.EMBEDDING: 0.5,
    Part.SKILLS: 0.25,
    Part.INDEX: 0.9,
    Part.CATALOG: 0.1,
    Part.SCHEMAS: 1.0,
    Part.RERANK: 0.5,
    Part.CURATION: 0.25,
    Part.SPELLING: 0.1,
}


_NOT_SEARCHED: Mapping[Part, tuple[type[Unavailable], str]] = {
    Part.EMBEDDING: (EmbedderUnavailable, "the embedding model"),
    Part.SKILLS: (IndexUnavailable, "the index of skills"),
    Part.INDEX: (IndexUnavailable, "the index"),
}


@dataclass
class Attempt:
    """Runs the parts of a request and records which of them failed."""

    deadline: Deadline
    failed: list[Part] = field(default_factory=list)
    setup_error: SetupError | None = None

    @property
    def parts_failed(self) -> tuple[str, ...]:
        """The failed parts, in the order of the table."""
        return tuple(part.value for part in Part if part in self.failed)

    async def or_else(self, part: Part, work: Coroutine[Any, Any, T], fallback: T) -> T:
        try:
            return await self.deadline.spend(SHARE_OF_TIME_LEFT[part], work)
        except (Unavailable, Rejected, SetupError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("search degraded", extra={"part": part.value, "reason": reason})
            if isinstance(error, SetupError):
                self.setup_error = error
            self.record(part)
            return fallback

    def record(self, part: Part) -> None:
        """Note that a part failed."""
        if part not in self.failed:
            self.failed.append(part)

    def require_found(self, result: object, *needed: Part) -> None:
        """Raise at the end of a search that found nothing while one of these parts failed: an agent would read an
        empty answer as "there is no such thing"."""
        failed = next((part for part in needed if part in self.failed), None)
        if result or failed is None:
            return
        if self.setup_error is not None:
            # No waiting helps: its hint names what does.
            raise self.setup_error
        kind, name = _NOT_SEARCHED[failed]
        raise kind(f"nothing could be searched: {name} does not answer", hint="try again in a moment")


async def run_on_daemon_thread(work: Callable[[], T]) -> T:
    """Run like `asyncio.to_thread`, but on a daemon thread: the program does not wait for it at exit."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(set_result: Callable[[], None]) -> None:
        if not result.done():
            set_result()

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
