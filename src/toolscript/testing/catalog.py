"""The dirty set in memory, with a clock that a test can move."""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count

from toolscript.errors import NotFound
from toolscript.model.dirty import FAILING_AFTER, Claim, Generation, GenerationState, Pending
from toolscript.model.index import PointVersion

LONG_AGO = float("-inf")


@dataclass
class _Dirty:
    version: int
    since: float
    free_at: float = LONG_AGO
    held_by: str | None = None
    attempts: int = 0
    last_error: str | None = None


class MemoryDirtySet:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._versions = count(1)
        self._generations = {1: Generation(1, GenerationState.LIVE, None)}
        self._dirty: dict[int, dict[int, _Dirty]] = {1: {}}
        self._filled: dict[int, float] = {1: float("inf")}
        self.catalog_page: Callable[[float, int], Sequence[PointVersion]] = lambda _after, _limit: ()

    def next_version(self) -> int:
        return next(self._versions)

    def mark_changed(self, changed: Iterable[tuple[int, int]]) -> None:
        for id_, version in changed:
            for rows in self._dirty.values():
                self._mark(rows, id_, version)

    def held_at_version(self, generation: int, claim: Claim) -> set[int]:
        """What of a claim is still held, and has not changed since."""
        held = self._held(generation, claim)
        return {id_ for id_, row in held.items() if row.version == claim.versions[id_]}

    async def generations(self) -> Sequence[Generation]:
        return list(self._generations.values())

    async def adopt(self, fingerprint: str) -> Generation:
        live = next(found for found in self._generations.values() if found.state is GenerationState.LIVE)
        known = {found.fingerprint for found in self._generations.values()}
        if live.fingerprint is None and fingerprint not in known:
            self._generations[live.id] = replace(live, fingerprint=fingerprint)
        return self._generations[live.id]

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        for found in self._generations.values():
            if found.fingerprint == fingerprint:
                self._filled[found.id] = 0 if afresh else self._filled[found.id]
                return found
        begun = Generation(max(self._generations) + 1, GenerationState.BUILDING, fingerprint)
        self._generations[begun.id] = begun
        self._dirty[begun.id] = {}
        self._filled[begun.id] = 0
        return begun

    async def fill(self, generation: int, limit: int) -> int:
        page = self.catalog_page(self._filled[generation], limit)
        for seen in page:
            row = self._dirty[generation].setdefault(seen.id, _Dirty(seen.version, self._now()))
            row.version = row.version if row.held_by is None else self.next_version()
        self._filled[generation] = page[-1].id if page else float("inf")
        return len(page)

    async def set_state(self, generation: int, state: GenerationState) -> None:
        if generation not in self._generations:
            raise NotFound(f"there is no generation {generation}")
        for id_, found in self._generations.items():
            if state is GenerationState.LIVE and found.state is GenerationState.LIVE:
                self._generations[id_] = replace(found, state=GenerationState.PREVIOUS)
        self._generations[generation] = replace(self._generations[generation], state=state)

    async def forget(self, generation: int) -> None:
        found = self._generations.get(generation)
        if found is None or found.state is GenerationState.LIVE:
            raise NotFound(f"there is no generation {generation} that could be dropped")
        del self._generations[generation], self._dirty[generation], self._filled[generation]

    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        token = uuid.uuid4().hex
        rows = self._dirty[generation]
        free = sorted(
            (row.free_at, id_)
            for id_, row in rows.items()
            if row.free_at == LONG_AGO or row.free_at <= self._now()
        )
        abandoned = [one for one in free if rows[one[1]].held_by is not None] if abandoned_first else []
        taken = [id_ for _, id_ in (abandoned or free)[:limit]]
        taken_over = frozenset(id_ for id_ in taken if rows[id_].held_by is not None)
        for id_ in taken:
            rows[id_].held_by, rows[id_].free_at = token, self._now() + lease_seconds
        return Claim(token, {id_: rows[id_].version for id_ in taken}, taken_over)

    @asynccontextmanager
    async def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AsyncIterator[None]:
        """Once: its clock stands still, or is moved by a test that wants the lease to run out."""
        await self.renew(generation, claim, lease_seconds)
        yield

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        held = self._held(generation, claim)
        for row in held.values():
            row.free_at = self._now() + lease_seconds
        return replace(claim, versions={id_: claim.versions[id_] for id_ in held})

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        rows, held = self._dirty[generation], self._held(generation, claim)
        for id_, version in claim.versions.items():
            if id_ not in held:
                self._mark(rows, id_, self.next_version())
            elif id_ in again:
                rows[id_].held_by, rows[id_].free_at = None, self._now() + after_seconds
            elif rows[id_].version == version:
                del rows[id_]
            else:
                rows[id_].held_by, rows[id_].free_at = None, LONG_AGO

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        for row in self._held(generation, claim).values():
            row.free_at = self._now() + min(60, 2 ** min(row.attempts, 6))
            row.held_by, row.attempts, row.last_error = None, row.attempts + 1, reason

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        for id_ in ids:
            self._mark(self._dirty[generation], id_, self.next_version())

    async def pending(self, generation: int) -> Pending:
        rows = self._dirty[generation].values()
        oldest = max((self._now() - row.since for row in rows), default=0.0)
        return Pending(len(rows), sum(row.attempts >= FAILING_AFTER for row in rows), oldest)

    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]:
        return set(ids) & self._dirty[generation].keys()

    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        rows = sorted(self._dirty[generation].items())
        return [(id_, row.last_error) for id_, row in rows if row.last_error is not None][:limit]

    def _held(self, generation: int, claim: Claim) -> dict[int, _Dirty]:
        rows = self._dirty[generation]
        return {id_: rows[id_] for id_ in claim.versions if id_ in rows and rows[id_].held_by == claim.token}

    def _mark(self, rows: dict[int, _Dirty], id_: int, version: int) -> None:
        row = rows.setdefault(id_, _Dirty(version, self._now()))
        row.version, row.attempts, row.last_error = version, 0, None
        if row.held_by is None:
            row.free_at = LONG_AGO
