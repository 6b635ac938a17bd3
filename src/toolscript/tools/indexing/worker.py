"""Keeps items and skills followed: until nothing is left to follow, or for ever."""

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
from toolscript.tools.model.catalog import GenerationState
from toolscript.tools.ports import DirtySet, Suggestions

RECOUNT_SECONDS = 5.0
MAX_PAUSE = 15.0
LOOK_AROUND_SECONDS = 30.0
# Every batch moves skills; their points are written this often at the most, and whenever there is no other work.
SKILLS_EVERY_SECONDS = 1.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkReport:
    followed: int
    left: int
    failing: int
    language_model: Spending | None = None


class Worker:
    def __init__(
        self,
        indexer: Indexer,
        skill_points: SkillPoints,
        suggestions: Suggestions,
        dirty: DirtySet,
        generation: int,
        *,
        on_progress: OnProgress = silent,
    ) -> None:
        self._indexer = indexer
        self._skill_points = skill_points
        self._suggestions = suggestions
        self._dirty = dirty
        self._generation = generation
        self._on_progress = on_progress
        self._done = 0
        self._total = 0
        self._counted_at = self._looked_at = self._skills_at = float("-inf")

    async def drain(self, patience_seconds: float = 120.0) -> WorkReport:
        """Works until nothing is left but what keeps failing; gives up when nothing moves for so long."""
        moved_at = time.monotonic()
        while True:
            if await self._step():
                moved_at = time.monotonic()
                continue
            pending = await self._dirty.pending(self._generation)
            if pending.total == pending.failing or time.monotonic() - moved_at > patience_seconds:
                return WorkReport(self._indexer.followed, pending.total, pending.failing)
            await asyncio.sleep(0.2)

    async def run_forever(self, poll_seconds: float = 1.0) -> None:
        pause = poll_seconds
        while True:
            try:
                await self._look_around()
                if await self._step():
                    continue
                pause = poll_seconds
            except Unavailable as error:
                logger.warning("waiting", extra={"reason": error.message})
                pause = min(pause * 2, MAX_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret

    async def _look_around(self) -> None:
        """Whether the index we follow is still wanted: a reindex may have put another in its place."""
        if time.monotonic() - self._looked_at < LOOK_AROUND_SECONDS:
            return
        self._looked_at = time.monotonic()
        states = {generation.id: generation.state for generation in await self._dirty.generations()}
        if self._generation not in states:
            raise SetupError(
                "the index this worker follows was dropped", hint="start it with the live index's model"
            )
        if states[self._generation] is GenerationState.PREVIOUS:
            logger.warning("another index is live; nobody else may be following it", extra={"part": "worker"})
        # A worker that began to mark everything for this index may have died in the middle of it.
        await fill(self._dirty, self._generation)

    async def _step(self) -> int:
        count = await self._indexer.follow_batch()
        if count:
            self._done += count
            await self._show()
        if count and time.monotonic() - self._skills_at < SKILLS_EVERY_SECONDS:
            return count
        self._skills_at = time.monotonic()
        return count + await self._skill_points.follow() + await self._suggestions.call_more()

    async def _show(self) -> None:
        """Counting costs what is pending, so it is done now and then."""
        if time.monotonic() - self._counted_at > RECOUNT_SECONDS:
            self._total = self._done + (await self._dirty.pending(self._generation)).total
            self._counted_at = time.monotonic()
        self._on_progress(Progress("index", self._done, max(self._total, self._done)))
