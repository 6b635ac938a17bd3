"""The order of hits that say the same: twins, which two servers offer alike, and what is deprecated."""

import re
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.core.items import Item, tool_id
from toolscript.core.retrieval.terms import terms_of_word, words_of

# A deprecated tool comes after others whose confidence is lower by no more than this.
SIMILAR = 0.02
# And after the one that its description names, if that has this share of its confidence.
LIKELY_SUCCESSOR = 0.5
_IDENTIFIER = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Standing:
    """An item at its place in a ranking. `is_certain`: its name was typed, or a rule promotes it."""

    place: int
    item: Item
    confidence: float
    is_certain: bool = False


@dataclass(frozen=True)
class Twins:
    """The place of one of several items that are the same but for their server, and that of the best of them;
    `also` are the others."""

    place: int
    best: int
    also: tuple[str, ...] = ()


def deprecated_last(ranked: Sequence[Standing]) -> list[Standing]:
    """Return the items with the deprecated ones behind those of similar confidence, and behind the one that their
    text names. The rest keeps its order."""
    if not any(standing.item.is_deprecated for standing in ranked):
        return [*ranked]

    def counted(standing: Standing) -> float:
        if standing.is_certain or not standing.item.is_deprecated:
            return standing.confidence
        return standing.confidence - SIMILAR

    ordered = sorted(ranked, key=counted, reverse=True)
    for deprecated in [one for one in ordered if one.item.is_deprecated and not one.is_certain]:
        successor = _successor(deprecated, ordered)
        if successor is not None:
            ordered.remove(deprecated)
            ordered.insert(ordered.index(successor) + 1, deprecated)
    return ordered


def _successor(deprecated: Standing, ordered: Sequence[Standing]) -> Standing | None:
    """Return the tool of the same server, further behind, that a deprecated one names in its description."""
    named = {*_IDENTIFIER.findall(deprecated.item.description)}
    behind = ordered[ordered.index(deprecated) + 1 :]
    return next(
        (
            one
            for one in behind
            if one.item.server == deprecated.item.server
            and one.item.name in named
            and one.confidence >= LIKELY_SUCCESSOR * deprecated.confidence
        ),
        None,
    )


def twin_groups(items: Sequence[Item]) -> NDArray[np.int64]:
    """Return a number for each item, the same for twins: tools of several servers with equal texts and schema."""
    groups = np.empty(len(items), np.int64)
    firsts: dict[tuple[str, str, str], list[int]] = {}
    for row, item in enumerate(items):
        same_texts = firsts.setdefault((item.kind, item.name, item.description), [])
        first = next((other for other in same_texts if _are_twins(items[other], item)), None)
        if first is None:
            same_texts.append(row)
        groups[row] = row if first is None else first
    return groups


def fold_twins(
    ranked: Sequence[int],
    groups: Sequence[int],
    items: Sequence[Item],
    limit: int,
    stems: Set[int] = frozenset(),
    preferred: Container[int] = (),
) -> list[Twins]:
    """Return the first of the ranked items, each tool once: a twin of a better one fills no place of its own.

    `groups` has the group of each ranked item. Of twins one is named whose place is `preferred`, or whose server
    the request names by its `stems`, else always that of the same server.
    """
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        if group in members:
            members[group].append(place)
        elif len(members) < limit:
            members[group] = [place]
    return [
        _named(places, [items[ranked[place]] for place in places], stems, preferred) for places in members.values()
    ]


def _named(places: Sequence[int], items: Sequence[Item], stems: Set[int], preferred: Container[int]) -> Twins:
    if len(places) == 1:
        return Twins(places[0], places[0])
    words = [{terms_of_word(word)[0] for word in words_of(item.server)} for item in items]
    common = frozenset.intersection(*map(frozenset, words))

    def standing(one: int) -> tuple[bool, int, str]:
        return places[one] not in preferred, -len((words[one] - common) & stems), items[one].server

    best = min(range(len(items)), key=standing)
    others = sorted(tool_id(item.server, item.name) for item in items if item is not items[best])
    return Twins(places[best], places[0], tuple(others))


def _are_twins(one: Item, other: Item) -> bool:
    return one.server != other.server and one.input_schema == other.input_schema


def differing_arguments(commands: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what tells servers apart that run the same command: the paths that not all of them have."""
    common = frozenset.intersection(*map(frozenset, commands.values())) if commands else frozenset()
    own = {server: [part for part in command if part not in common] for server, command in commands.items()}
    return {server: " ".join(paths) for server, parts in own.items() if (paths := [*filter(_is_path, parts)])}


def _is_path(text: str) -> bool:
    return text.startswith(("/", "~", "./", "../")) or re.match(r"[A-Za-z]:[\\/]", text) is not None
