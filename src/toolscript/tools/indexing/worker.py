"""The worker: indexes dirty items and skills, until none are left (`drain`) or forever (`run_forever`)."""

import asyncio
import logging
import random
import time
from dataclasses import dataclass

from toolscript.core.errors import SetupError, Unavailable
from toolscript.core.llm.model import Spending
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.indexing.indexer import Indexer
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.indexing.versions import fill
from toolscript.tools.indexing.wakeup import Wakeup
from toolscript.tools.model.catalog import IndexVersionState
from toolscript.tools.ports import DirtySet, Suggestions

# Between two counts of the pending items.
RECOUNT_SECONDS = 5.0
# Between two attempts while a dependency is unavailable, at most.
MAX_PAUSE_SECONDS = 15.0
# Between two checks that the index version still exists.
CHECK_SECONDS = 30.0
DRAIN_POLL_SECONDS = 0.2
# Every batch changes centroids; their points are written at most this often, and when there is no other work.
SKILLS_EVERY_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkReport:
    """Result of a drain: items brought up to date, items left, and how many of those keep failing.

    `language_model` is what the classifier has spent; the caller of `drain` sets it.
    """

    indexed: int
    left: int
    failing: int
    language_model: Spending | None = None


class Worker:
    """Keeps one index version up to date. Several may run at once: each leases the items of its batch."""

    def __init__(
        self,
        indexer: Indexer,
        skill_points: SkillPoints,
        suggestions: Suggestions,
        dirty: DirtySet,
        index_version: int,
        *,
        on_progress: OnProgress = silent,
        wakeup: Wakeup | None = None,
    ) -> None:
        self._indexer = indexer
        self._skill_points = skill_points
        self._suggestions = suggestions
        self._dirty = dirty
        self._index_version = index_version
        self._on_progress = on_progress
        self._wakeup = wakeup or Wakeup()
        self._is_ending = False
        self._done = 0
        self._total = 0
        self._counted_at = self._checked_at = self._skills_at = float("-inf")

    async def drain(self, patience_seconds: float = 120.0) -> WorkReport:
        """Work until only failing items are left; give up after `patience_seconds` without progress."""
        progress_at = time.monotonic()
        while True:
            if await self._step():
                progress_at = time.monotonic()
                continue
            pending = await self._dirty.pending(self._index_version)
            if pending.total == pending.failing or time.monotonic() - progress_at > patience_seconds:
                return WorkReport(self._indexer.indexed, pending.total, pending.failing)
            await asyncio.sleep(DRAIN_POLL_SECONDS)

    async def run_forever(self, poll_seconds: float = 1.0) -> None:
        """Work until `end` or cancelled. Retry with backoff while a part is unavailable; other errors end it."""
        pause = poll_seconds
        while not self._is_ending:
            try:
                await self._check_version()
                has_worked = await self._step()
                pause = poll_seconds
                if has_worked:
                    continue
            except Unavailable as error:
                logger.warning("waiting", extra={"part": "worker", "reason": error.message})
                pause = min(pause * 2, MAX_PAUSE_SECONDS)
            await self._wakeup.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret

    def end(self) -> None:
        """Let `run_forever` return after the batch in progress."""
        self._is_ending = True
        self._wakeup.call()

    async def _check_version(self) -> None:
        """Check that the index version is in use and there: a reindex may replace it, and an engine lose it."""
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        states = {index_version.id: index_version.state for index_version in await self._dirty.index_versions()}
        if self._index_version not in states:
            raise SetupError(
                "the index version of this worker was dropped", hint="start it with the live index's model"
            )
        if states[self._index_version] is IndexVersionState.PREVIOUS:
            logger.warning("another index is live and may have no worker", extra={"part": "worker"})
        await self._indexer.require_index()
        # A worker that was marking every item dirty for this index version may have died.
        await fill(self._dirty, self._index_version)

    async def _step(self) -> int:
        """Index a batch and, not after every one, write skills and reclassify; return how many were done."""
        count = await self._indexer.index_batch()
        if count:
            self._done += count
            await self._report_progress()
        if count and time.monotonic() - self._skills_at < SKILLS_EVERY_SECONDS:
            return count
        self._skills_at = time.monotonic()
        return count + await self._skill_points.index_stale() + await self._suggestions.reclassify_more()

    async def _report_progress(self) -> None:
        """Report progress. Counting takes time in proportion to the pending items, so it happens rarely."""
        if time.monotonic() - self._counted_at > RECOUNT_SECONDS:
            self._total = self._done + (await self._dirty.pending(self._index_version)).total
            self._counted_at = time.monotonic()
        self._on_progress(Progress("index", self._done, max(self._total, self._done)))
