"""Indexes the catalog: claims a batch of dirty items, classifies, embeds and writes them.

Killing it between any two steps loses nothing: the batch stays dirty and its lease expires. It is idempotent: it
always writes the current state of an item, and the index keeps the newest version.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

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

# Writes that a worker sent before it lost its lease reach the index within this many leases.
LEASES_TO_LAND = 10

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ItemSkills:
    def __init__(self, taxonomy: Taxonomy, assignments: Assignments, classifier: Classifier) -> None:
        self._active_skills = ActiveSkills(taxonomy)
        self._assignments = assignments
        self._classifier = classifier

    async def settled(self, items: Sequence[StoredItem], vectors: Matrix) -> list[StoredItem]:
        """Classify the items that need skills; return all items with their current skills and versions.

        Without any skill, items wait for the first one and for `toolscript skills reclassify`. The classifier gets
        the items of one namespace at a time, so that no prompt of a language model has those of two.
        """
        waiting = [(stored, vector) for stored, vector in zip(items, vectors, strict=True) if stored.needs_skills]
        skills = await self._active_skills.now() if waiting else ()
        if not skills:
            return list(items)
        classified: list[Classified] = []
        for namespace, group in by_namespace(waiting, lambda pair: pair[0].namespace).items():
            unclassified = [Unclassified(item.item, vector) for item, vector in group]
            answers = await self._classifier.classify(unclassified, skills)
            classified += [
                Classified(item.id, item.version, answer, namespace)
                for (item, _), answer in zip(group, answers, strict=True)
            ]
        taken = await self._assignments.record(classified)
        return [_updated(stored, taken[stored.id]) if stored.id in taken else stored for stored in items]


def by_namespace(values: Iterable[T], namespace_of: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for value in values:
        groups.setdefault(namespace_of(value), []).append(value)
    return groups


def _updated(stored: StoredItem, taken: tuple[int, tuple[Assignment, ...]]) -> StoredItem:
    version, assignments = taken
    return replace(stored, version=version, assignments=assignments, needs_skills=False)


class Step(StrEnum):
    """The steps of a batch, in order."""

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
    """Ignore the step: the default of `at_step`."""


class Indexer:
    def __init__(
        self,
        catalog: Catalog,
        dirty: DirtySet,
        skill_vectors: SkillVectors,
        item_skills: ItemSkills,
        embedder: Embedder,
        index: Index,
        index_version: int,
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
        self._index_version = index_version
        self._batch = batch
        self._lease_seconds = lease_seconds
        self._at_step = at_step
        self._abandoned_first = False
        self.indexed = 0

    async def require_index(self) -> None:
        """Raise SetupError when its engine has lost the index."""
        await self._index.fields([1])

    async def index_batch(self) -> int:
        """Index the next dirty items; return how many were claimed."""
        claim = await self._claim()
        if claim.versions:
            self._at_step(Step.CLAIMED)
            try:
                async with self._dirty.keep_lease(self._index_version, claim, self._lease_seconds):
                    await self._index_or_postpone(claim)
            except asyncio.CancelledError:
                # Release the batch at once, so that no worker waits for the lease.
                await self._dirty.renew(self._index_version, claim, lease_seconds=0)
                raise
        return len(claim.versions)

    async def _claim(self) -> Claim:
        """Claim a batch. Batches of killed workers come first, except in the first claim of this worker.

        A batch that kills its worker would otherwise kill each restarted worker at once, and nothing else would
        be indexed.
        """
        abandoned_first, self._abandoned_first = self._abandoned_first, True
        return await self._dirty.claim(
            self._index_version, self._batch, self._lease_seconds, abandoned_first=abandoned_first
        )

    async def _index_or_postpone(self, claim: Claim) -> None:
        """Index the batch. Halve it until a rejected item is alone, so that it does not hold back the others."""
        try:
            await self._index_items(claim)
        except Unavailable as error:
            await self._postpone(claim, error)
            raise
        except Rejected as error:
            if len(claim.versions) == 1:
                await self._postpone(claim, error)
                return
            for half in _halves(claim):
                await self._index_or_postpone(half)

    async def _postpone(self, claim: Claim, error: ToolscriptError) -> None:
        logger.warning("items postponed", extra={"done": len(claim.versions), "reason": error.message})
        await self._dirty.postpone(self._index_version, claim, error.message)

    async def _index_items(self, claim: Claim) -> None:
        rows = await self._catalog.items(list(claim.versions))
        items = [stored for stored in rows if stored.is_active]
        self._at_step(Step.READ)
        hashes = {stored.id: vector_hash(stored.item) for stored in items}
        vectors = await self._vectors(items, hashes)
        self._at_step(Step.EMBEDDED)
        settled = await self._item_skills.settled(items, vectors)
        claim = _with_new_versions(claim, items, settled)
        self._at_step(Step.CLASSIFIED)
        claim = await self._renew_lease(claim)
        self._at_step(Step.RENEWED)
        await self._skill_vectors.count(self._index_version, claim, _counted(settled, hashes, vectors))
        self._at_step(Step.COUNTED)
        points = [point_of(stored, vector) for stored, vector in zip(settled, vectors, strict=True)]
        await self._index.put([point for point in points if point.id in claim.versions])
        self._at_step(Step.PUT)
        gone = _gone(claim, rows)
        await self._index.remove(gone)
        self._at_step(Step.REMOVED)
        # The worker whose lease expired may still write a removed point, and die before it reports that. Such
        # items stay dirty until its writes have landed.
        release_later = claim.expired_leases & {point.id for point in gone}
        await self._dirty.clear(self._index_version, claim, release_later, self._lease_seconds * LEASES_TO_LAND)
        self.indexed += len(claim.versions)
        self._at_step(Step.CLEARED)

    async def _renew_lease(self, claim: Claim) -> Claim:
        """Renew the lease before any write: a process that stalls for longer than its lease loses the batch."""
        held = await self._dirty.renew(self._index_version, claim, self._lease_seconds)
        if lost := len(claim.versions) - len(held.versions):
            logger.warning("lease lost to another worker", extra={"part": "worker", "done": lost})
        return held

    async def _vectors(self, items: Sequence[StoredItem], hashes: Mapping[int, str]) -> Matrix:
        """Return the vectors. An item whose text has not changed is not embedded again.

        Texts of one namespace at a time: with some models a vector depends a little on the texts beside it.
        """
        vectors = dict(await self._skill_vectors.recall(self._index_version, hashes))
        new = [stored for stored in items if stored.id not in vectors]
        for group in by_namespace(new, lambda stored: stored.namespace).values():
            embedded = await embed_items(self._embedder, [stored.item for stored in group])
            vectors |= {stored.id: vector for stored, vector in zip(group, embedded, strict=True)}
        return np.array([vectors[stored.id] for stored in items], dtype=np.float32)


def _with_new_versions(claim: Claim, before: Sequence[StoredItem], after: Sequence[StoredItem]) -> Claim:
    """Return the claim with the versions that classification gave to its items."""
    ours = {new.id: new.version for old, new in zip(before, after, strict=True) if new.version != old.version}
    return replace(claim, versions=claim.versions | ours)


def _counted(items: Sequence[StoredItem], hashes: Mapping[int, str], vectors: Matrix) -> list[Counted]:
    return [
        Counted(
            item.id,
            hashes[item.id],
            vector,
            {assignment.skill_id: assignment.weight for assignment in item.assignments},
            item.namespace,
        )
        for item, vector in zip(items, vectors, strict=True)
    ]


def _gone(claim: Claim, rows: Sequence[StoredItem]) -> list[PointVersion]:
    """Return the points to remove. The namespace of an item whose row is gone, too, is not known."""
    present = {stored.id for stored in rows if stored.is_active}
    namespaces = {stored.id: stored.namespace for stored in rows}
    return [
        PointVersion(id_, version, namespaces.get(id_))
        for id_, version in claim.versions.items()
        if id_ not in present
    ]


def _halves(claim: Claim) -> list[Claim]:
    pairs = list(claim.versions.items())
    middle = len(pairs) // 2
    return [replace(claim, versions=dict(pairs[:middle])), replace(claim, versions=dict(pairs[middle:]))]
