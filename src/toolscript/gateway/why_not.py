"""Why an item is not among the hits of a search, and what would bring it back."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from toolscript.core.items import Item, tool_id
from toolscript.core.retrieval.query import MAX_LIMIT
from toolscript.gateway.model import Absence, AbsenceReason, LocalAnswer, LocalHit, LocalQuery


async def absence_of(
    item: Item,
    rule: str,
    query: LocalQuery,
    answer: LocalAnswer,
    search: Callable[[LocalQuery], Awaitable[LocalAnswer]],
) -> Absence:
    """Return why an item of the index is not among the hits of this answer.

    `rule` is the reason of the rule that excludes it, empty if none does. `search` runs the query again without a
    limit or threshold, to find the item's place.
    """
    found = _place(answer.all_hits, item)
    if found is not None:
        return _absent(query, item, AbsenceReason.RETURNED, f"it is returned, at place {found[0]}", found[1])
    if query.kind not in (None, item.kind):
        text = f"it is a {item.kind}; the search is limited to {query.kind}s"
        return _absent(query, item, AbsenceReason.OTHER_KIND, text)
    if query.servers and item.server not in query.servers:
        text = f"it is of {item.server}; the search is limited to {', '.join(query.servers)}"
        return _absent(query, item, AbsenceReason.OTHER_SERVER, text)
    if rule:
        text = f"a rule excludes it: {rule}; remove the rule to have it returned"
        return _absent(query, item, AbsenceReason.EXCLUDED, text)
    found = _place((await search(replace(query, limit=MAX_LIMIT, threshold=0.0))).hits, item)
    if found is None:
        text = f"it is not among the first {MAX_LIMIT} for these words: rephrase the query"
        return _absent(query, item, AbsenceReason.NOT_A_CANDIDATE, text)
    return _behind(query, item, *found)


def _behind(query: LocalQuery, item: Item, place: int, hit: LocalHit) -> Absence:
    beyond = f"it is at place {place}, beyond the limit of {query.limit}: raise `limit`"
    if hit.confidence >= query.threshold:
        return _absent(query, item, AbsenceReason.BEYOND_LIMIT, beyond, hit)
    text = f"its confidence is {hit.confidence:.2f}, below the threshold of {query.threshold}: lower `threshold`"
    text += f"; and {beyond}" if place > query.limit else ""
    return _absent(query, item, AbsenceReason.BELOW_THRESHOLD, text, hit)


def _place(hits: tuple[LocalHit, ...], item: Item) -> tuple[int, LocalHit] | None:
    """Return the place of an item among hits, itself or as the twin of another, with that hit."""
    name = tool_id(item.server, item.name)
    for place, hit in enumerate(hits, 1):
        if hit.item.key == item.key or name in hit.also:
            return place, hit
    return None


def _absent(
    query: LocalQuery, item: Item, reason: AbsenceReason, message: str, hit: LocalHit | None = None
) -> Absence:
    absence = Absence(query.about, reason, message, tool_id(item.server, item.name))
    return absence if hit is None else replace(absence, confidence=hit.confidence, parts=hit.parts)
