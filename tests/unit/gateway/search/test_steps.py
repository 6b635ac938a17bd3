"""A request for several things is answered step by step, with the built-in model."""

import pytest

from tests.unit.gateway.search.builders import BASH, CALENDAR, FORECAST, READ_FILE, SEND_MAIL, WRITE_FILE, index_of
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.retrieval.curation import Curation, Rule, RuleKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.rerank import STEP_HITS
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.json import answer_from_json, answer_shown, answer_to_json
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch

TOOLS = (READ_FILE, WRITE_FILE, SEND_MAIL, FORECAST, BASH, CALENDAR)
SEVERAL = "get the weather forecast for Rome, write it into a file and send a mail to Anna"


async def answer_of(text: str, *rules: Rule, **fields: object) -> LocalAnswer:
    embedder, search = StaticEmbedder(), LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.embedder, search.scale = embedder, await measure_scale(embedder)
    search.index = index_of(TOOLS, await embed_items(embedder, TOOLS))
    search.curation = Curation(rules)
    return await search.search(LocalQuery(text, **fields))  # type: ignore[arg-type]


async def test_each_step_has_its_own_tools() -> None:
    answer = await answer_of(SEVERAL, threshold=0.1)
    first = [(step.query, step.hits[0].item, step.good_match) for step in answer.steps]
    assert first == [
        ("get the weather forecast for Rome", FORECAST, True),
        ("write it into a file", WRITE_FILE, True),
        ("send a mail to Anna", SEND_MAIL, True),
    ]
    assert all(len(step.hits) <= STEP_HITS for step in answer.steps)


async def test_a_step_that_nothing_fits_is_no_good_match() -> None:
    answer = await answer_of("Get the weather forecast for Rome. Order a pizza with extra cheese.")
    assert [step.good_match for step in answer.steps] == [True, False]


async def test_a_step_returns_no_more_than_the_limit_and_nothing_below_the_threshold() -> None:
    assert {len(step.hits) for step in (await answer_of(SEVERAL, limit=1, threshold=0.0)).steps} == {1}
    steps = (await answer_of(SEVERAL, threshold=1.0)).steps
    assert [(step.hits, step.good_match) for step in steps] == [((), False)] * 3


async def test_a_promotion_counts_for_the_step_that_has_its_words() -> None:
    rule = Rule(RuleKind.PROMOTE, "write into file", tool=BASH.key)
    steps = (await answer_of(SEVERAL, rule)).steps
    assert [step.hits[0].item for step in steps] == [FORECAST, BASH, SEND_MAIL]


@pytest.mark.parametrize("text", ["send a mail to Anna", "read a file"])
async def test_a_request_for_one_thing_has_no_steps(text: str) -> None:
    answer = await answer_of(text)
    assert (answer.steps, answer.all_hits) == ((), answer.hits)


@pytest.mark.parametrize("search_type", [SearchType.SEMANTIC, SearchType.KEYWORD])
async def test_a_single_retriever_takes_the_request_as_one(search_type: SearchType) -> None:
    assert (await answer_of(SEVERAL, search_type=search_type)).steps == ()


async def test_all_hits_have_each_item_once_with_those_of_the_steps_first() -> None:
    answer = await answer_of(SEVERAL, threshold=0.0, limit=100)
    keys = [hit.item.key for hit in answer.all_hits]
    assert keys[0] == FORECAST.key
    assert sorted(keys) == sorted(tool.key for tool in TOOLS)


async def test_steps_survive_json() -> None:
    answer = await answer_of(SEVERAL)
    read = answer_from_json(answer_to_json(answer, explain=True, schemas=True))
    assert [(step.query, step.good_match) for step in read.steps] == [(step.query, True) for step in answer.steps]
    assert [[hit.parts for hit in step.hits] for step in read.steps] == [
        [hit.parts for hit in step.hits] for step in answer.steps
    ]
    shown = answer_shown(answer, explain=False, schemas=False)["steps"]
    assert [step["query"] for step in shown] == [step.query for step in answer.steps]
