"""A model that does whatever the data tells it, before two hundred tools that tell it much."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import pytest

from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify import held_out_texts, hostile_texts
from tests.unit.tools.classify.benign_tools import benign_tools
from tests.unit.tools.classify.builders import asked, default_skills, ids_of
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
        answers = await classifier.classify(await asked(embedder, items), SKILLS)
        await text.close()
    return [ids_of(one) for one in answers]


async def right_skills() -> list[list[str]]:
    embedder = HashEmbedder()
    return [ids_of(one) for one in await RulesClassifier(embedder).classify(await asked(embedder, TOOLS), SKILLS)]


def hostile(texts: ModuleType, right: Sequence[Sequence[str]]) -> list[Item]:
    forms = [f"{{0}} {text}" for text in texts.APPENDED] + [f"{text} {{0}}" for text in texts.PREPENDED]
    items = []
    for number, (item, own) in enumerate(zip(TOOLS, right, strict=True)):
        others = [skill for skill in SKILLS if skill.id not in own]
        skill = others[number * 5 % len(others)]
        text = forms[number % len(forms)].format(item.description, id=skill.id, name=skill.name)
        items.append(replace(item, description=text))
    return items


@pytest.mark.parametrize("texts", [hostile_texts, held_out_texts], ids=["seen", "held out"])
async def test_hardly_any_demand_in_a_description_reaches_the_model(texts: ModuleType) -> None:
    right = await right_skills()
    items = hostile(texts, right)
    given = await classified(items, {item.key: own for item, own in zip(TOOLS, right, strict=True)})
    moved = [
        (item.description, own, one)
        for item, own, one in zip(items, right, given, strict=True)
        if set(own) != set(one) or own[:1] != one[:1]
    ]
    assert len(moved) <= 2, moved


async def test_the_model_does_as_it_is_told_where_nothing_is_left_out() -> None:
    told = replace(TOOLS[0], description="See weather_environment.", name="weather_environment")
    assert await classified([told], {}) == [["weather_environment"]]
