"""Cache of point payloads, valid as long as the revision of the point stays the same.

Popular items are candidates again and again, and reading their payloads costs as much as finding them. A candidate
carries the revision of its point; a cached payload of another revision is not used. Replicas of a point may count
revisions differently, and a recreated point starts at the first: so entries expire after ten minutes, with jitter,
so that entries loaded together do not expire together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from toolscript.core.retrieval.cache import TtlCache
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.model import Candidate, Fields
from toolscript.core.retrieval.ports import IndexReader
from toolscript.core.retrieval.rerank import Features, features_of_payload

CACHE_SIZE = 10_000
CACHE_SECONDS = 600.0

Revisions = Mapping[int, int]
Value = TypeVar("Value")


@dataclass(frozen=True)
class CachedPayload:
    """`features` are the unpacked fields that the reranker uses."""

    fields: Fields
    features: Features

    @property
    def skill_ids(self) -> tuple[str, ...]:
        return skills_of(self.fields)


CachedPayloads = Mapping[int, CachedPayload]


def skills_of(fields: Fields) -> tuple[str, ...]:
    skills = fields.get("skill_ids")
    return tuple(map(str, skills)) if isinstance(skills, list | tuple) else ()


def revisions_of(hits: Iterable[Candidate]) -> dict[int, int]:
    return {hit.id: hit.revision for hit in hits}


class RevisionCache(Generic[Value]):
    """Values of items, each valid as long as the revision of its point. `part` is what fails if `_load` does."""

    part: ClassVar[Part]

    def __init__(self, size: int) -> None:
        self._points = TtlCache[int, tuple[int, Value]](size, CACHE_SECONDS)

    def cached(self, revisions: Revisions) -> dict[int, Value]:
        """Return the values that are cached with these revisions."""
        entries = self._points.get_all(revisions)
        return {id_: value for id_, (revision, value) in entries.items() if revision == revisions[id_]}

    def has_all(self, revisions: Revisions) -> bool:
        return len(self.cached(revisions)) == len(revisions)

    async def read(self, revisions: Revisions) -> dict[int, Value]:
        """Return the values of all items that still exist."""
        cached = self.cached(revisions)
        missing = [id_ for id_ in revisions if id_ not in cached]
        if not missing:
            return cached
        read = await self._load(missing)
        # A point that changed since it was retrieved comes with another revision next time, and is read again.
        kept = {
            id_: (revisions[id_], value) for id_, value in read.items() if revisions[id_] and self._keeps(value)
        }
        self._points.put(kept)
        return {**cached, **read}

    async def read_or_cached(self, attempt: Attempt, revisions: Revisions) -> dict[int, Value]:
        """Return the values of all items that still exist; when reading fails, only cached ones."""
        cached = self.cached(revisions)
        if len(cached) == len(revisions):
            return cached
        return await attempt.or_else(self.part, self.read(revisions), cached)

    async def _load(self, ids: Sequence[int]) -> Mapping[int, Value]:
        raise NotImplementedError

    def _keeps(self, _value: Value) -> bool:
        return True


class PayloadCache(RevisionCache[CachedPayload]):
    part = Part.INDEX

    def __init__(self, index: IndexReader, size: int = CACHE_SIZE) -> None:
        super().__init__(size)
        self._index = index

    async def _load(self, ids: Sequence[int]) -> Mapping[int, CachedPayload]:
        return {id_: _cached_payload(fields) for id_, fields in (await self._index.fields(ids)).items()}


def _cached_payload(fields: Fields) -> CachedPayload:
    plain = {name: fields[name] for name in fields if name != "stems"}
    return CachedPayload(plain, features_of_payload(fields))
