"""What points carry, remembered for as long as they stay as they are.

Popular items are candidates again and again, and reading them costs as much as finding them. A candidate says
which revision of its point was found; what is remembered of another revision is not used. Copies of a point may
count differently, and one made anew counts from the start: so nothing is remembered for longer than ten minutes,
and not all that was read at once is forgotten at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolscript.core.retrieval.cache import TtlCache
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.model import Candidate, Fields
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.rerank import Features, features_of_payload

REMEMBERED = 10_000
REMEMBERED_SECONDS = 600.0

Revisions = Mapping[int, int]


@dataclass(frozen=True)
class CachedPayload:
    """`traits` are the part of the fields that a ranking looks at, unpacked."""

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
    def __init__(self, index: Index, size: int = REMEMBERED) -> None:
        self._index = index
        self._points = TtlCache[int, tuple[int, CachedPayload]](size, REMEMBERED_SECONDS)

    def known(self, wanted: Revisions) -> CachedPayloads:
        """Those that need not be read."""
        held = {id_: payload for id_ in wanted if (payload := self._points.get(id_)) is not None}
        return {id_: payload for id_, (revision, payload) in held.items() if revision == wanted[id_]}

    async def read(self, wanted: Revisions) -> CachedPayloads:
        """All of them that are still there."""
        known = self.known(wanted)
        missing = [id_ for id_ in wanted if id_ not in known]
        if not missing:
            return known
        read = {id_: _cached_payload(fields) for id_, fields in (await self._index.fields(missing)).items()}
        # One that changed since it was found is found with another revision next time, and read again.
        self._points.put({id_: (wanted[id_], payload) for id_, payload in read.items() if wanted[id_]})
        return {**known, **read}

    async def read_or_known(self, attempt: Attempt, wanted: Revisions) -> CachedPayloads:
        """When the index fails, those that need not be read."""
        known = self.known(wanted)
        return known if len(known) == len(wanted) else await attempt.or_else(Part.INDEX, self.read(wanted), known)


def _cached_payload(fields: Fields) -> CachedPayload:
    plain = {name: fields[name] for name in fields if name != "stems"}
    return CachedPayload(plain, features_of_payload(fields))
