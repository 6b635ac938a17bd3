"""Items that name their topics, and a classifier that reads them.

Topics come in groups, and an item has topics of one group only: while a group's skills are being changed its items
are left alone, so that the expected result does not depend on timing.
"""

import hashlib
from collections.abc import Sequence

from toolscript.core.items import AssignedBy, Assignment, Item, ItemKind, valid_assignments
from toolscript.core.taxonomy import Classification, Skill, SuggestedSkill, Unclassified

GROUPS = 20
TOPICS_PER_GROUP = 4
SOURCES = 6


def source_of(key: str) -> str:
    """Return the source. Concurrent writers use different sources: writes to one source are serialized."""
    return f"source{int(key[1:]) % SOURCES}"


def topic(group: int, number: int) -> str:
    return f"g{group:02}_t{number}"


def group_of(name: str) -> int:
    return int(name[1:3])


def item(key: str, topics: Sequence[str], salt: int) -> Item:
    return Item(key, ItemKind.TOOL, "server", f"tool {key}", f"{' '.join(topics)} | text {salt}")


def topics_of(thing: Item) -> list[str]:
    return thing.description.partition(" |")[0].split()


def confidence(key: str, name: str) -> float:
    return 0.5 + hashlib.sha256(f"{key}:{name}".encode()).digest()[0] / 512


def classified(thing: Item, known: frozenset[str]) -> Classification:
    result = [
        Assignment(name, confidence(thing.key, name), AssignedBy.RULES, "it says so")
        for name in topics_of(thing)
        if name in known
    ]
    missing = [name for name in topics_of(thing) if name not in known]
    suggestion = SuggestedSkill(missing[0], f"About {missing[0]}") if missing and not result else None
    return Classification(valid_assignments(result, known), suggestion)


class TopicClassifier:
    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        existing = frozenset(skill.id for skill in skills)
        return [classified(each.item, existing) for each in items]
