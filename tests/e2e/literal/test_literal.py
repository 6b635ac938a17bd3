"""Literal mode returns the same hits as a short script over the bare engine."""

from dataclasses import replace

import pytest

from tests.e2e.literal.bare import Bare
from tests.e2e.literal.compare import SAME, Compared, compared
from tests.unit.tools.search_http.catalog import GOLDEN
from toolscript.core.items import Item
from toolscript.core.settings.service import Settings
from toolscript.tools.catalog.files import read_items
from toolscript_eval.dataset import Dataset, DatasetQuery

# Some match skills, some match none, and some have several sub-queries.
REQUESTS = {
    "read a file": "read_file",
    "send an email and book a flight": "send_email",
    "schedule a meeting with John tomorrow": "create_event",
    'delete "Q3 budget.xlsx" in the folder <finance>': "delete_file",
    "quarks and gluons in the early universe": "",
    "open a pull request for my branch, then tell the team in the chat": "create_pull_request",
    "прогноз погоды": "",
    "'; DROP TABLE mcp.items; --": "",
    "what will the weather be like tomorrow": "get_forecast",
    "run a query on the database": "run_query",
}


@pytest.fixture(scope="module")
async def result(engines: Settings, model_folder: str) -> Compared:
    items = [item for item in read_items(GOLDEN) if isinstance(item, Item)]
    by_name = {item.name: item.key for item in items}
    queries = [
        DatasetQuery(str(index), text, {by_name[name]: 1} if name in by_name else {})
        for index, (text, name) in enumerate(REQUESTS.items())
    ]
    settings = engines.model_copy(update={"embedding_model": model_folder})
    return await compared(settings, Dataset("golden", items, queries))


@pytest.mark.states("S0-005", "S0-018", "S0-029", "S0-036", "S0-037", "S0-101")
async def test_every_answer_is_that_of_the_bare_engine(result: Compared) -> None:
    assert len(result.pairs) == len(REQUESTS)
    assert [pair.query.text for pair in result.differing] == []
    assert any(pair.bare.skills is None for pair in result.pairs)
    assert any(pair.bare.skills for pair in result.pairs)
    assert sum(len(pair.bare.hits) for pair in result.pairs) > 20


async def test_the_report_shows_the_counts(result: Compared) -> None:
    assert result.told().startswith(f"golden: {len(REQUESTS)} requests, 0 answers differ, ")
    assert all(0.0 <= quality <= 1.0 for quality in result.literal_quality)
    assert len(result.literal_quality) == len(result.default_quality) > 1


async def test_a_comparison_notices_every_kind_of_difference(result: Compared) -> None:
    pair = next(pair for pair in result.pairs if pair.bare.skills and len(pair.bare.hits) > 2)
    skills, hits = pair.bare.skills, pair.bare.hits
    (first, score), *rest = hits
    wrong = [
        Bare(skills, rest),
        Bare(skills, [*hits, (first + 1_000, hits[-1][1])]),
        Bare(skills, [(first, score + 3 * SAME), *rest]),
        Bare(skills, [(first + 1_000, score), *rest]),
        Bare(None, hits),
        Bare(["another"], hits),
    ]
    assert [replace(pair, bare=item).differs for item in wrong] == [True] * len(wrong)
    assert not pair.differs
