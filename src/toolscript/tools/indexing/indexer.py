"""Makes one index follow the catalog: a batch of dirty items at a time, classified and embedded.

Killed between any two steps nothing is lost: the batch stays dirty and its lease runs out. Done twice it gives
the same: what is written is always the item's current state, and the index keeps the newest version.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from toolscript.core.embedding.items import embed_items, vector_hash
from toolscript.core.errors import Rejected, ToolscriptError, Unavailable
from toolscript.core.items import Assignment, StoredItem
from toolscript.core.retrieval.model import Matrix, PointVersion
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.taxonomy import Classified, Unclassified
from toolscript.tools.indexing.points import point_of
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Counted
from toolscript.tools.ports import Assignments, Catalog, Classifier, DirtySet, SkillVectors, Taxonomy
from toolscript.tools.skills.management import ActiveSkills

# What a worker sent before it lost its lease has reached the index after so many leases at the latest.
LEASES_TO_LAND = 10

logger = logging.getLogger(__name__)


class ItemSkills:
    def __init__(self, taxonomy: Taxonomy, assignments: Assignments, classifier: Classifier) -> None:
        self._active_skills = ActiveSkills(taxonomy)
        self._assignments = assignments
        self._classifier = classifier

    async def settled(self, items: Sequence[StoredItem], vectors: Matrix) -> list[StoredItem]:
        """The items with the skills they have now, and the version that gave them those.

        Where there are no skills at all, items wait for the first: `toolscript skills reclassify` calls them.
        """
        waiting = [(stored, vector) for stored, vector in zip(items, vectors, strict=True) if stored.needs_skills]
        skills = await self._active_skills.now() if waiting else ()
        if not skills:
            return list(items)
        classifications = await self._classifier.classify(
            [Unclassified(item.item, vector) for item, vector in waiting], skills
        )
        taken = await self._assignments.record(
            [
                Classified(item.id, item.version, answer)
                for (item, _), answer in zip(waiting, classifications, strict=True)
            ]
        )
        return [_now(stored, taken[stored.id]) if stored.id in taken else stored for stored in items]


def _now(stored: StoredItem, taken: tuple[int, tuple[Assignment, ...]]) -> StoredItem:
    version, assignments = taken
    return replace(stored, version=version, assignments=assignments, needs_skills=False)


class Step(StrEnum):
    """The moments of a batch, in order."""

    CLAIMED = "claimed"
    READ = "read"
    EMBEDDED = "embedded"
    CLASSIFIED = "classified"
    RENEWED = "renewed"
    COUNTED = "counted"
    PUT = "put"
    REMOVED = "removed"
    CLEARED = "cleared"


OnStep = Callable[[Step], None]


def unobserved(_: Step) -> None:
    """For a batch that nobody watches."""


class Indexer:
    def __init__(
        self,
        catalog: Catalog,
        dirty: DirtySet,
        skill_vectors: SkillVectors,
        item_skills: ItemSkills,
        embedder: Embedder,
        index: Index,
        generation: int,
        *,
        batch: int,
        lease_seconds: float,
        at_step: OnStep = unobserved,
    ) -> None:
        self._catalog = catalog
        self._dirty = dirty
        self._skill_vectors = skill_vectors
        self._item_skills = item_skills
        self._embedder = embedder
        self._index = index
        self._generation = generation
        self._batch = batch
        self._lease_seconds = lease_seconds
        self._at_step = at_step
        self._abandoned_first = False
        self.followed = 0

    async def follow_batch(self) -> int:
        """Follows the next dirty items; answers how many were claimed."""
        claim = await self._claim()
        if claim.versions:
            self._at_step(Step.CLAIMED)
            try:
                async with self._dirty.kept(self._generation, claim, self._lease_seconds):
                    await self._follow_or_postpone(claim)
            except asyncio.CancelledError:
                # Whoever stops us must not have to wait for the lease.
                await self._dirty.renew(self._generation, claim, lease_seconds=0)
                raise
        return len(claim.versions)

    async def _claim(self) -> Claim:
        """What a killed worker held comes first; a new worker begins elsewhere: that batch may be what kills."""
        abandoned_first, self._abandoned_first = self._abandoned_first, True
        return await self._dirty.claim(
            self._generation, self._batch, self._lease_seconds, abandoned_first=abandoned_first
        )

    async def _follow_or_postpone(self, claim: Claim) -> None:
        """One item that a part refuses must not hold back the others: the batch is halved until it is alone."""
        try:
            await self._follow(claim)
        except Unavailable as error:
            await self._postpone(claim, error)
            raise
        except Rejected as error:
            if len(claim.versions) == 1:
                await self._postpone(claim, error)
                return
            for half in _halves(claim):
                await self._follow_or_postpone(half)

    async def _postpone(self, claim: Claim, error: ToolscriptError) -> None:
        logger.warning("items postponed", extra={"done": len(claim.versions), "reason": error.message})
        await self._dirty.postpone(self._generation, claim, error.message)

    async def _follow(self, claim: Claim) -> None:
        items = [stored for stored in await self._catalog.items(list(claim.versions)) if stored.is_active]
        self._at_step(Step.READ)
        hashes = {stored.id: vector_hash(stored.item) for stored in items}
        vectors = await self._vectors(items, hashes)
        self._at_step(Step.EMBEDDED)
        settled = await self._item_skills.settled(items, vectors)
        claim = _with_our_changes(claim, items, settled)
        self._at_step(Step.CLASSIFIED)
        claim = await self._still_held(claim)
        self._at_step(Step.RENEWED)
        await self._skill_vectors.count(self._generation, claim, _counted(settled, hashes, vectors))
        self._at_step(Step.COUNTED)
        points = [point_of(stored, vector) for stored, vector in zip(settled, vectors, strict=True)]
        await self._index.put([point for point in points if point.id in claim.versions])
        self._at_step(Step.PUT)
        gone = _gone(claim, items)
        await self._index.remove(gone)
        self._at_step(Step.REMOVED)
        # Whoever held it before may put back what we removed, and die before it can tell: we look once more.
        again = claim.taken_over & {point.id for point in gone}
        await self._dirty.clear(self._generation, claim, again, self._lease_seconds * LEASES_TO_LAND)
        self.followed += len(claim.versions)
        self._at_step(Step.CLEARED)

    async def _still_held(self, claim: Claim) -> Claim:
        """Before anything is written: a process that stood still for longer than its lease has lost the batch."""
        held = await self._dirty.renew(self._generation, claim, self._lease_seconds)
        if lost := len(claim.versions) - len(held.versions):
            logger.warning("lease lost; another worker has the items", extra={"part": "worker", "done": lost})
        return held

    async def _vectors(self, items: Sequence[StoredItem], hashes: Mapping[int, str]) -> Matrix:
        """An item that only changed its skills is not embedded again."""
        known = dict(await self._skill_vectors.recall(self._generation, hashes))
        new = [stored for stored in items if stored.id not in known]
        embedded = await embed_items(self._embedder, [stored.item for stored in new])
        known |= {stored.id: vector for stored, vector in zip(new, embedded, strict=True)}
        return np.array([known[stored.id] for stored in items], dtype=np.float32)


def _with_our_changes(claim: Claim, before: Sequence[StoredItem], after: Sequence[StoredItem]) -> Claim:
    """A classification changes an item too: the version it gave is what we are at work on now."""
    ours = {new.id: new.version for old, new in zip(before, after, strict=True) if new.version != old.version}
    return replace(claim, versions=claim.versions | ours)


def _counted(items: Sequence[StoredItem], hashes: Mapping[int, str], vectors: Matrix) -> list[Counted]:
    return [
        Counted(item.id, hashes[item.id], vector, {its.skill_id: its.weight for its in item.assignments})
        for item, vector in zip(items, vectors, strict=True)
    ]


def _gone(claim: Claim, items: Sequence[StoredItem]) -> list[PointVersion]:
    present = {stored.id for stored in items}
    return [PointVersion(id_, version) for id_, version in claim.versions.items() if id_ not in present]


def _halves(claim: Claim) -> list[Claim]:
    pairs = list(claim.versions.items())
    middle = len(pairs) // 2
    return [replace(claim, versions=dict(pairs[:middle])), replace(claim, versions=dict(pairs[middle:]))]
