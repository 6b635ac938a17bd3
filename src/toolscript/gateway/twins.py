"""The order of hits that say the same: twins, which two servers offer alike, and what is deprecated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolscript.core.items import Item, tool_id

# A deprecated tool comes after others whose confidence is lower by no more than this.
SIMILAR = 0.02


@dataclass(frozen=True)
class Standing:
    """An item at its place in a ranking. `is_certain`: its name was typed, or a rule promotes it."""

    place: int
    item: Item
    confidence: float
    is_certain: bool = False


@dataclass(frozen=True)
class Twins:
    """The place of the best of several items that are the same but for their server; `also` are the others."""

    place: int
    also: tuple[str, ...] = ()


def deprecated_last(ranked: Sequence[Standing]) -> list[Standing]:
    """Return the items with the deprecated ones behind those of similar confidence. The rest keeps its order."""
    if not any(standing.item.is_deprecated for standing in ranked):
        return [*ranked]

    def counted(standing: Standing) -> float:
        if standing.is_certain or not standing.item.is_deprecated:
            return standing.confidence
        return standing.confidence - SIMILAR

    return sorted(ranked, key=counted, reverse=True)


def fold_twins(ranked: Sequence[Standing]) -> list[Twins]:
    """Return each tool once: a twin of a better one fills no place of its own."""
    twins = dict[int, Twins]()
    firsts = dict[tuple[str, str, str], list[Standing]]()
    for standing in ranked:
        item = standing.item
        same_texts = firsts.setdefault((item.kind, item.name, item.description), [])
        first = next((other for other in same_texts if _are_twins(other.item, item)), None)
        if first is None:
            same_texts.append(standing)
            twins[standing.place] = Twins(standing.place)
        else:
            known = twins[first.place]
            twins[first.place] = replace(known, also=(*known.also, tool_id(item.server, item.name)))
    return [*twins.values()]


def _are_twins(one: Item, other: Item) -> bool:
    return one.server != other.server and one.input_schema == other.input_schema
