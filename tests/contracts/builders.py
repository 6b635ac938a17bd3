"""Small values for contract tests."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, JsonObject, StoredItem
from toolscript.core.retrieval.model import IndexCard, ModelCard, Point, Scalar, Vector
from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.core.taxonomy import Classification, Classified, Skill, SuggestedSkill, Suggestion
from toolscript.tools.ports import Assignments, Catalog, DirtySet, SkillVectors, Suggestions, Taxonomy

DIMENSIONS = 8
CARD = IndexCard(ModelCard("small", "1", DIMENSIONS))
OTHER_CARD = IndexCard(ModelCard("other", "1", DIMENSIONS))
FIRST = 1  # the index version that is live from the start


@dataclass(frozen=True)
class Record:
    """A catalog, the dirty set it writes to, and skills; `let_pass` moves their clock by so many seconds."""

    catalog: Catalog
    dirty: DirtySet
    let_pass: Callable[[float], Awaitable[None]]
    taxonomy: Taxonomy
    assignments: Assignments
    suggestions: Suggestions
    skill_vectors: SkillVectors


def tool(name: str, description: str = "", schema: JsonObject | None = None) -> Item:
    return Item(f"server__{name}", ItemKind.TOOL, "server", name, description, input_schema=schema)


def tools(count: int, description: str = "") -> list[Item]:
    return [tool(f"tool_{number}", description) for number in range(count)]


async def with_skills(record: Record, *skill_ids: str) -> None:
    for skill_id in skill_ids:
        await record.taxonomy.add(Skill(skill_id, skill_id.title()), "ann")


async def with_items(record: Record, count: int) -> list[int]:
    """Store items and return their ids in order; none of them is dirty."""
    await record.catalog.store("file", tools(count))
    await settle(record)
    return [seen.id for seen in await record.catalog.scan(0, 1000)][-count:]


async def settle(record: Record) -> None:
    """Clear all dirty items."""
    await record.dirty.clear(FIRST, await record.dirty.claim(FIRST, 1000, 60))


async def dirty_versions(record: Record) -> dict[int, int]:
    """Claim the dirty items and return their versions."""
    return (await record.dirty.claim(FIRST, 1000, 60)).versions


async def item(record: Record, item_id: int) -> StoredItem:
    (result,) = await record.catalog.items([item_id])
    return result


def sure(
    skill_id: str, confidence: float = 0.9, source: AssignedBy = AssignedBy.LLM, reason: str = "said so"
) -> Assignment:
    return Assignment(skill_id, confidence, source, reason)


async def classified(
    record: Record, item_id: int, *assignments: Assignment, asks_for: str = "", described: str = ""
) -> Classified:
    """Return the classifier's result for the current version of the item."""
    suggestion, stored = SuggestedSkill(asks_for, described) if asks_for else None, await item(record, item_id)
    return Classified(item_id, stored.version, Classification(assignments, suggestion), stored.namespace)


async def classify(
    record: Record, item_id: int, *assignments: Assignment, asks_for: str = "", described: str = ""
) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
    each = await classified(record, item_id, *assignments, asks_for=asks_for, described=described)
    return await record.assignments.record([each])


async def asked(record: Record, count: int = 2) -> tuple[Suggestion, list[int]]:
    """Return a suggestion and its items; none of them is dirty."""
    items = await with_items(record, count)
    for id_ in items:
        await classify(record, id_, asks_for="Post Office", described="Letters.")
    await settle(record)
    (suggestion,) = await record.suggestions.page(0, 10)
    return suggestion, items


async def asking(record: Record, suggestion: Suggestion) -> list[int]:
    return list(await record.suggestions.asked_by(suggestion.id, 0, 100))


def axis(number: int) -> Vector:
    """The unit vector along one axis."""
    return np.asarray(np.eye(DIMENSIONS)[number], dtype=np.float32)


def between(first: int, second: int, share: float) -> Vector:
    """A unit vector whose cosine with the first axis is `share`."""
    return np.asarray(share * axis(first) + np.sqrt(1 - share**2) * axis(second), dtype=np.float32)


def terms(text: str) -> dict[int, float]:
    """Each word of the text once, with weight one."""
    return {terms_of_word(word)[1]: 1.0 for word in words_of(text)}


def point(
    id_: int,
    version: int = 1,
    vector: Vector | None = None,
    words: str = "",
    **fields: Scalar | Sequence[str] | None,
) -> Point:
    value: Mapping[str, Scalar | Sequence[str] | None] = {"type": "tool", "is_active": True, **fields}
    return Point(id_, version, axis(0) if vector is None else vector, terms(words), value)
