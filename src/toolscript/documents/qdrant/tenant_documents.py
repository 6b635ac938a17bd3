"""What a writer does when it has written: it looks whether what stands is its own.

Somebody else may write or remove the same documents at the same moment. Each point keeps its newest version, and
each writer looks after its last write, so whoever looks last sees both:
- the header is another's, and newer, or gone: the own passages are taken away again;
- the header is the own one, and so is every passage: whatever lies beyond the last one is older, and goes;
- all else, as of two who had the same version by chance: it is written again, as the newest.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.documents.ids import passage_id
from toolscript.adapters.qdrant.documents.payload import HASH, PASSAGES, VERSION
from toolscript.adapters.qdrant.documents.tenant_points import Span, TenantPoints, among
from toolscript.adapters.qdrant.documents.writing import complete
from toolscript.model.batches import in_batches
from toolscript.model.document_points import IndexedDocument, PassageId
from toolscript.model.documents import DocumentHeader

MOST_IDS = 1_000
UNSEEN_TRIES, UNSEEN_SECONDS = 10, 0.05


@dataclass(frozen=True)
class _Seen:
    """A point as it stands. A passage that is no header has neither hash nor count."""

    version: int
    hash: str
    passages: int


Stands = Mapping[PassageId, _Seen]


async def settled(points: TenantPoints, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Answers those that have to be written again, as they have to be."""
    version = documents[0].header.version
    there = await _written(points, documents)
    lost = [one for one in documents if _is_lost(one, there)]
    await _remove(points, (it for one in lost for it in _reach(one)), version, version)
    ours = [one for one in documents if _is_ours(one, there)]
    left = [it for one in ours for it in _beyond(one)]
    left += [it for one in ours if _end(one) in there for it in await _further(points, _end(one))]
    await _remove(points, left, 0, version)
    await complete(points, [one for one in ours if len(one.passages) > 1 or one.replaces > 1], version)
    done = {one.header.key for one in (*lost, *ours)}
    return _as_newest([one for one in documents if one.header.key not in done], there)


def not_newer(header: DocumentHeader, version: int) -> Span:
    """All of a document as far as it is no newer than this and its header: what is written meanwhile stays."""
    ids = [PassageId(header.key, number) for number in range(header.passages)]
    return Span(ids, 0, min(version, header.version))


async def _written(points: TenantPoints, documents: Sequence[IndexedDocument]) -> Stands:
    """What is not there was removed by somebody else.

    Or its tenant is being moved: then there is a moment in which what was written last is not seen yet, and what
    is seen is older.
    """
    version = documents[0].header.version
    own = [it for one in documents for it in _own(one)]
    ids = [*own, *map(_end, documents)]
    there = await _seen(points, ids)
    for _ in range(UNSEEN_TRIES):
        if all(id_ in there and there[id_].version >= version for id_ in own):
            break
        await asyncio.sleep(UNSEEN_SECONDS)
        there = await _seen(points, ids)
    return there


async def _seen(points: TenantPoints, ids: Sequence[PassageId]) -> dict[PassageId, _Seen]:
    found: dict[PassageId, _Seen] = {}
    for batch in in_batches(ids, MOST_IDS):
        page = await points.scroll(wire.Filter(must=[among(batch)]), len(batch), fields=(VERSION, HASH, PASSAGES))
        found |= {passage_id(point.id): _as_seen(point.payload) for point in page}
    return found


def _as_seen(payload: Any) -> _Seen:
    is_head = HASH in payload
    return _Seen(
        payload[VERSION].integer_value,
        payload[HASH].string_value if is_head else "",
        payload[PASSAGES].integer_value if is_head else 0,
    )


def _is_lost(document: IndexedDocument, there: Stands) -> bool:
    head = there.get(PassageId(document.header.key, 0))
    return head is None or head.version > document.header.version


def _is_ours(document: IndexedDocument, there: Stands) -> bool:
    version = document.header.version
    seen = [there.get(id_) for id_ in _own(document)]
    is_own = all(one is not None and one.version == version for one in seen)
    return is_own and seen[0] is not None and seen[0].hash == document.header.content_hash


def _as_newest(documents: Sequence[IndexedDocument], there: Stands) -> list[IndexedDocument]:
    seen = [there[id_] for one in documents for id_ in _own(one) if id_ in there]
    newest = 1 + max((one.version for one in seen), default=0)
    return [
        replace(
            one,
            header=replace(one.header, version=newest),
            replaces=max(len(one.passages), one.replaces, there[PassageId(one.header.key, 0)].passages),
        )
        for one in documents
    ]


def _own(document: IndexedDocument) -> list[PassageId]:
    return [PassageId(document.header.key, number) for number in range(len(document.passages))]


def _beyond(document: IndexedDocument) -> Iterator[PassageId]:
    """What it had before and has no more."""
    numbers = range(len(document.passages), document.replaces)
    return (PassageId(document.header.key, number) for number in numbers)


def _reach(document: IndexedDocument) -> Iterator[PassageId]:
    return (PassageId(document.header.key, number) for number in range(_end(document).number))


def _end(document: IndexedDocument) -> PassageId:
    """The first that nobody is known to have written: whoever wrote a longer text meanwhile has."""
    return PassageId(document.header.key, max(len(document.passages), document.replaces))


async def _further(points: TenantPoints, first: PassageId) -> list[PassageId]:
    """The passages from there on, as far as they follow one another."""
    found: list[PassageId] = []
    while True:
        start = first.number + len(found)
        wanted = [PassageId(first.key, number) for number in range(start, start + MOST_IDS)]
        page = await _seen(points, wanted)
        found += page
        if len(page) < len(wanted):
            return found


async def _remove(points: TenantPoints, ids: Iterable[PassageId], least: int, most: int) -> None:
    for batch in in_batches(ids, MOST_IDS):
        await points.remove_versions([Span(batch, least, most)])
