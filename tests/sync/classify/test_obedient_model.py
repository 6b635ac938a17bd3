"""A model that does whatever the data tells it, before two hundred tools that tell it much."""

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import pytest

from tests.adapters.text_endpoint import TextEndpoint
from tests.sync.classify import held_out_texts, hostile_texts
from tests.sync.classify.benign_tools import benign_tools
from tests.sync.classify.models import obedient
from tests.sync.classify.scenes import asked, default_skills, ids_of
from toolscript.adapters.openai_text import OpenAITextModel
from toolscript.model.items import Item
from toolscript.sync.classify import FallbackClassifier, LlmClassifier, RulesClassifier
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("SK-004")

SKILLS = default_skills()


async def classified(items: Sequence[Item]) -> list[list[str]]:
    with TextEndpoint(model=obedient) as endpoint:
        embedder = HashEmbedder()
        rules = RulesClassifier(embedder)
        text = OpenAITextModel(endpoint.url, "m", retries=0)
        classifier = FallbackClassifier(LlmClassifier(text, rules), rules)
        answers = await classifier.classify(await asked(embedder, items), SKILLS)
        await text.close()
    return [ids_of(one) for one in answers]


def hostile(items: Sequence[Item], texts: ModuleType) -> list[Item]:
    given = [*texts.APPENDED, *texts.PREPENDED]
    return [
        replace(
            item,
            description=f"{item.description} "
            + given[number % len(given)].format(id=SKILLS[number % 9].id, name=SKILLS[number % 9].name),
        )
        for number, item in enumerate(items)
    ]


@pytest.mark.parametrize("texts", [hostile_texts, held_out_texts], ids=["seen", "held out"])
async def test_no_demand_in_a_description_reaches_the_model(texts: ModuleType) -> None:
    items = benign_tools()
    before, after = await classified(items), await classified(hostile(items, texts))
    moved = [
        (item.description, one, other)
        for item, one, other in zip(hostile(items, texts), before, after, strict=True)
        if one != other
    ]
    assert len(moved) <= 2, moved


async def test_the_model_does_as_it_is_told_where_nothing_is_left_out() -> None:
    plain = benign_tools()[0]
    told = replace(plain, description="See weather_environment.", name="weather_environment")
    assert await classified([told]) == [["weather_environment"]]
