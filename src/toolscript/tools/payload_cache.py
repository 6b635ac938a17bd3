"""Cache of point payloads, valid as long as the revision of the point stays the same.

Popular items are candidates again and again, and reading their payloads costs as much as finding them. A candidate
carries the revision of its point; a cached payload of another revision is not used. Replicas of a point may count
revisions differently, and a recreated point starts at the first: so entries expire after ten minutes, with jitter,
so that entries loaded together do not expire together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolscript.core.retrieval.cache import TtlCache
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.model import Candidate, Fields
from toolscript.core.retrieval.ports import IndexReader
from toolscript.core.retrieval.rerank import Features, features_of_payload

CACHE_SIZE = 10_000
CACHE_SECONDS = 600.0

Revisions = Mapping[int, int]


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


class PayloadCache:
    def __init__(self, index: IndexReader, size: int = CACHE_SIZE) -> None:
        self._index = index
        self._points = TtlCache[int, tuple[int, CachedPayload]](size, CACHE_SECONDS)

    def cached(self, revisions: Revisions) -> CachedPayloads:
        """Return the payloads that are cached with these revisions."""
        entries = self._points.get_all(revisions)
        return {id_: payload for id_, (revision, payload) in entries.items() if revision == revisions[id_]}

    async def read(self, revisions: Revisions) -> CachedPayloads:
        """Return the payloads of all points that still exist."""
        cached = self.cached(revisions)
        missing = [id_ for id_ in revisions if id_ not in cached]
        if not missing:
            return cached
        read = {id_: _cached_payload(fields) for id_, fields in (await self._index.fields(missing)).items()}
        # A point that changed since it was retrieved comes with another revision next time, and is read again.
        self._points.put({id_: (revisions[id_], payload) for id_, payload in read.items() if revisions[id_]})
        return {**cached, **read}

    async def read_or_cached(self, attempt: Attempt, revisions: Revisions) -> CachedPayloads:
        """Return the payloads of all points that still exist; when the index fails, only cached ones."""
        cached = self.cached(revisions)
        if len(cached) == len(revisions):
            return cached
        return await attempt.or_else(Part.INDEX, self.read(revisions), cached)


def _cached_payload(fields: Fields) -> CachedPayload:
    plain = {name: fields[name] for name in fields if name != "stems"}
    return CachedPayload(plain, features_of_payload(fields))
