"""Two hundred tools, each with text that demands another skill, classified by rules and a real embedding model."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

import pytest

from tests.unit.tools.classify import held_out_texts, hostile_texts, unseen_texts
from tests.unit.tools.classify.benign_tools import benign_tools
from tests.unit.tools.classify.builders import default_skills, ids_of, unclassified
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.items import Item
from toolscript.core.taxonomy import Skill
from toolscript.tools.classify.rules import RulesClassifier

SKILLS = default_skills()


@dataclass(frozen=True)
class Scene:
    embedder: LocalEmbedder
    rules: RulesClassifier
    items: Sequence[Item]
    skills_of: Sequence[Sequence[str]]

    async def classified(self, items: Sequence[Item]) -> list[list[str]]:
        return [
            ids_of(answer)
            for answer in await self.rules.classify(await unclassified(self.embedder, items), SKILLS)
        ]


@pytest.fixture(scope="module")
def scene(model_folder: str) -> Iterator[Scene]:
    embedder = LocalEmbedder(model_folder)
    unread = Scene(embedder, RulesClassifier(embedder), benign_tools(), ())
    yield replace(unread, skills_of=asyncio.run(unread.classified(unread.items)))
    embedder.close()


def other_skill(number: int, skill_ids: Sequence[str]) -> Skill:
    """Return a skill that the tool is not in, a different one for each tool."""
    other_skills = [skill for skill in SKILLS if skill.id not in skill_ids]
    return other_skills[number * 5 % len(other_skills)]


def hostile(scene: Scene, texts: ModuleType) -> Iterator[Item]:
    forms = [f"{{description}} {text}" for text in texts.APPENDED] + [
        f"{text} {{description}}" for text in texts.PREPENDED
    ]
    for number, (item, skill_ids) in enumerate(zip(scene.items, scene.skills_of, strict=True)):
        skill = other_skill(number, skill_ids)
        text = forms[number % len(forms)]
        yield replace(item, description=text.format(id=skill.id, name=skill.name, description=item.description))


@pytest.mark.nightly
def test_the_tools_are_in_skills_and_the_texts_of_many_kinds(scene: Scene) -> None:
    assert len(scene.items) == 200
    assert sum(1 for skill_ids in scene.skills_of if skill_ids) > 180
    assert len(hostile_texts.APPENDED + hostile_texts.PREPENDED) >= 20
    assert len(held_out_texts.APPENDED + held_out_texts.PREPENDED) >= 20


@pytest.mark.nightly
@pytest.mark.requirement("SK-004", "SK-005")
@pytest.mark.parametrize(
    ("texts", "max_moved"),
    [(hostile_texts, 2), (held_out_texts, 2), (unseen_texts, 4)],
    ids=["seen", "held out", "unseen"],
)
async def test_hardly_any_tool_is_moved_by_demands_in_its_description(
    scene: Scene, texts: ModuleType, max_moved: int
) -> None:
    items = list(hostile(scene, texts))
    moved = [
        (item.description, before, after)
        for item, before, after in zip(items, scene.skills_of, await scene.classified(items), strict=True)
        if set(before) != set(after) or before[:1] != after[:1]
    ]
    assert len(moved) <= max_moved, moved
