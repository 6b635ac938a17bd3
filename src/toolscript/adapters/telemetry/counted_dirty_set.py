"""The dirty set, asked through somebody who counts what a worker does."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager

from toolscript.adapters.telemetry.worker_figures import WorkerFigures
from toolscript.errors import ToolscriptError
from toolscript.model.dirty import Claim, Generation, GenerationState, Pending
from toolscript.ports import DirtySet


class CountedDirtySet:
    def __init__(self, dirty: DirtySet, figures: WorkerFigures) -> None:
        self._dirty = dirty
        self._figures = figures

    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        try:
            return await self._dirty.claim(generation, limit, lease_seconds, abandoned_first=abandoned_first)
        except ToolscriptError:
            self._figures.failed(0)
            raise

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        await self._dirty.clear(generation, claim, again, after_seconds)
        self._figures.followed(len(claim.versions))

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        self._figures.failed(len(claim.versions))
        await self._dirty.postpone(generation, claim, reason)

    async def generations(self) -> Sequence[Generation]:
        return await self._dirty.generations()

    async def adopt(self, fingerprint: str) -> Generation:
        return await self._dirty.adopt(fingerprint)

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        return await self._dirty.begin(fingerprint, afresh=afresh)

    async def fill(self, generation: int, limit: int) -> int:
        return await self._dirty.fill(generation, limit)

    async def set_state(self, generation: int, state: GenerationState) -> None:
        await self._dirty.set_state(generation, state)

    async def forget(self, generation: int) -> None:
        await self._dirty.forget(generation)

    def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AbstractAsyncContextManager[None]:
        return self._dirty.kept(generation, claim, lease_seconds)

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        return await self._dirty.renew(generation, claim, lease_seconds)

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        await self._dirty.mark(generation, ids)

    async def pending(self, generation: int) -> Pending:
        return await self._dirty.pending(generation)

    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]:
        return await self._dirty.are_dirty(generation, ids)

    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        return await self._dirty.failing(generation, limit)
