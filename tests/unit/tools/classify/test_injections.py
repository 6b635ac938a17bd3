"""Ninety-eight injections on the whole path through a language model: prompt, fence, answer, checks, fallback.

The model is scripted: it obeys whatever reaches it, and assigns any skill that the data names. Its answers are
recorded from a real endpoint on loopback and replayed from the cassette, as `eval skills` does. They come from a
script and not from a language model, so they say nothing about how obedient a real one is.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify.builders import default_skills, ids_of, tool, unclassified
from tests.unit.tools.classify.hostile_texts import APPENDED, PREPENDED
from tests.unit.tools.classify.injections import INJECTIONS, Injection
from tests.unit.tools.classify.models import obedient
from toolscript.core.errors import NotFound
from toolscript.core.items import AssignedBy, Item
from toolscript.core.llm.cassette import (
    REPLAY_URL,
    Cassette,
    CassetteTransport,
    cassette_to_record,
    read_cassette,
)
from toolscript.core.llm.openai import FENCE_RULE, OpenAITextModel
from toolscript.core.taxonomy import Classification
from toolscript.testing import HashEmbedder
from toolscript.tools.classify.llm import LlmClassifier, data_of, instructions_for, schema_for
from toolscript.tools.classify.rules import FallbackClassifier, RulesClassifier

pytestmark = [pytest.mark.requirement("SK-004"), pytest.mark.slow]

SKILLS = default_skills()
READ = tool("read_file", "Return the text of a file in a folder.", "disk")
RIGHT = "file_operations"
TARGET = next(skill for skill in SKILLS if skill.id == "weather_environment")
SPOKEN = tuple(Injection(text.replace("{{", "{").replace("}}", "}")) for text in (*APPENDED, *PREPENDED))
ALL = (*SPOKEN, *INJECTIONS)
ITEMS = tuple(injection.into(READ, TARGET.id, TARGET.name) for injection in ALL)


async def classified(url: str, transport: CassetteTransport, items: Sequence[Item]) -> list[Classification]:
    """Classify each item in a request of its own, with the rules behind the model, as a worker does."""
    embedder = HashEmbedder()
    rules = RulesClassifier(embedder)
    text = OpenAITextModel(url, "scripted", retries=0, transport=transport)
    classifier = FallbackClassifier(LlmClassifier(text, rules), rules)
    try:
        return [(await classifier.classify(await unclassified(embedder, [item]), SKILLS))[0] for item in items]
    finally:
        await text.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Cassette:
    path: Path = tmp_path_factory.mktemp("cassette") / "obedient.json"
    cassette = cassette_to_record(path, "scripted")
    with TextEndpoint(model=obedient({READ.key: [RIGHT]})) as endpoint:
        transport = CassetteTransport(cassette, httpx2.AsyncHTTPTransport())
        asyncio.run(classified(endpoint.url, transport, [READ, *ITEMS]))
    cassette.save()
    return read_cassette(path)


async def replayed(recorded: Cassette, item: Item) -> Classification:
    (answer,) = await classified(REPLAY_URL, CassetteTransport(recorded), [item])
    recorded.require_complete()
    return answer


def test_the_injections_are_many_and_all_different() -> None:
    assert len({(item.name, item.server, item.description, str(item.input_schema)) for item in ITEMS}) >= 90
    assert len({injection.text for injection in INJECTIONS}) == len(INJECTIONS) >= 60


async def test_a_tool_without_an_injection_gets_the_answer_of_the_model(recorded: Cassette) -> None:
    answer = await replayed(recorded, READ)
    assert ids_of(answer) == [RIGHT]
    assert answer.assignments[0].source is AssignedBy.LLM


async def test_the_model_obeys_what_reaches_it() -> None:
    with TextEndpoint(model=obedient({})) as endpoint:
        transport = CassetteTransport(Cassette(Path("unused"), "scripted"), httpx2.AsyncHTTPTransport())
        calm = tool("weather_environment", "See weather_environment.")
        assert ids_of((await classified(endpoint.url, transport, [calm]))[0]) == [TARGET.id]


async def test_no_injection_decides_the_skill(recorded: Cassette, subtests: pytest.Subtests) -> None:
    for number in range(len(ALL)):
        with subtests.test(number=number):
            assert ids_of(await replayed(recorded, ITEMS[number])) in ([RIGHT], [])


@pytest.fixture(scope="module")
def unclean() -> Sequence[Mapping[str, Any]]:
    """Return the requests for the plain tool and for each injection, as if nothing had been left out of it."""

    async def send(url: str) -> None:
        text = OpenAITextModel(url, "scripted", retries=0)
        for item in (READ, *ITEMS):
            await text.reply(instructions_for(SKILLS), data_of([item]), schema_for(SKILLS, 1))
        await text.close()

    with TextEndpoint(default={"items": []}) as endpoint:
        asyncio.run(send(endpoint.url))
        return list(endpoint.asked)


async def test_no_injection_escapes_the_fence(
    unclean: Sequence[Mapping[str, Any]], subtests: pytest.Subtests
) -> None:
    for number in range(len(ALL)):
        with subtests.test(number=number):
            plain, request = unclean[0], unclean[number + 1]
            system, user = (message["content"] for message in request["messages"])
            fenced = re.fullmatch(r"BEGIN ([0-9a-f]{16})\n(.*)\nEND \1", user, re.DOTALL)
            assert fenced is not None
            mark, data = fenced.groups()
            assert mark not in data
            # One line, and one object with the fields of an item: nothing was added to it, and nothing was closed.
            assert "\n" not in data
            assert json.loads(data).keys() == {"item", "kind", "server", "name", "description", "parameters"}
            # The instructions are those of a plain tool but for the mark, and so are the answers that are allowed.
            plain_mark = plain["messages"][1]["content"][len("BEGIN ") :][: len(mark)]
            assert system == plain["messages"][0]["content"].replace(plain_mark, mark)
            assert FENCE_RULE.format(mark) in system
            assert request["response_format"] == plain["response_format"]


async def test_an_injection_that_was_not_recorded_is_an_error(recorded: Cassette) -> None:
    cassette = Cassette(recorded.path, "scripted", dict(recorded.answers))
    other = tool("read_file", "Return the text of another file.", "disk")
    (answer,) = await classified(REPLAY_URL, CassetteTransport(cassette), [other])
    assert {assignment.source for assignment in answer.assignments} == {AssignedBy.RULES}
    with pytest.raises(NotFound, match="has no answer to 1 requests"):
        cassette.require_complete()
