"""A model that obeys any text in the data, with two hundred tools that contain demands."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import pytest

from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify import held_out_texts, hostile_texts
from tests.unit.tools.classify.benign_tools import benign_tools
from tests.unit.tools.classify.builders import default_skills, ids_of, unclassified
from tests.unit.tools.classify.models import obedient
from toolscript.core.items import Item
from toolscript.core.llm.openai import OpenAITextModel
from toolscript.testing import HashEmbedder
from toolscript.tools.classify.llm import LlmClassifier
from toolscript.tools.classify.rules import FallbackClassifier, RulesClassifier

pytestmark = [pytest.mark.requirement("SK-004"), pytest.mark.slow]

SKILLS = default_skills()


TOOLS = benign_tools()


async def classified(items: Sequence[Item], right: Mapping[str, Sequence[str]]) -> list[list[str]]:
    with TextEndpoint(model=obedient(right)) as endpoint:
        embedder = HashEmbedder()
        rules = RulesClassifier(embedder)
        text = OpenAITextModel(endpoint.url, "m", retries=0)
        classifier = FallbackClassifier(LlmClassifier(text, rules), rules)
        answers = await classifier.classify(await unclassified(embedder, items), SKILLS)
        await text.close()
    return [ids_of(answer) for answer in answers]


async def right_skills() -> list[list[str]]:
    embedder = HashEmbedder()
    return [
        ids_of(answer)
        for answer in await RulesClassifier(embedder).classify(await unclassified(embedder, TOOLS), SKILLS)
    ]


def hostile(texts: ModuleType, right: Sequence[Sequence[str]]) -> list[Item]:
    forms = [f"{{0}} {text}" for text in texts.APPENDED] + [f"{text} {{0}}" for text in texts.PREPENDED]
    items = []
    for number, (item, own) in enumerate(zip(TOOLS, right, strict=True)):
        other_skills = [skill for skill in SKILLS if skill.id not in own]
        skill = other_skills[number * 5 % len(other_skills)]
        text = forms[number % len(forms)].format(item.description, id=skill.id, name=skill.name)
        items.append(replace(item, description=text))
    return items


@pytest.mark.parametrize("texts", [hostile_texts, held_out_texts], ids=["seen", "held out"])
async def test_hardly_any_demand_in_a_description_reaches_the_model(texts: ModuleType) -> None:
    right = await right_skills()
    items = hostile(texts, right)
    assigned = await classified(items, {item.key: own for item, own in zip(TOOLS, right, strict=True)})
    moved = [
        (item.description, own, skill_ids)
        for item, own, skill_ids in zip(items, right, assigned, strict=True)
        if set(own) != set(skill_ids) or own[:1] != skill_ids[:1]
    ]
    assert len(moved) <= 2, moved


async def test_the_test_model_obeys_text_that_is_not_left_out() -> None:
    steering = replace(TOOLS[0], description="See weather_environment.", name="weather_environment")
    assert await classified([steering], {}) == [["weather_environment"]]
