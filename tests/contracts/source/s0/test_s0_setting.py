"""S0 for clients that know no `search_type`: an installation can be literal as a whole."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import Installation
from tests.contracts.source.s0.builders import LITERAL, Truth, are_the_same
from tests.contracts.source.s0.test_s0_skill_stage import QUERIES
from tests.unit.tools.search_http.builders import Searching, without_times
from tests.unit.tools.sources_http.builders import serving


@pytest.fixture(scope="module")
async def literal(stocked: Installation) -> AsyncIterator[Searching]:
    async with serving(stocked, TOOLSCRIPT_SEARCH_TYPE="semantic") as service:
        yield Searching(service)


@pytest.mark.states("S0-007", "S0-008", "S0-018", "S0-037", "S0-066", "S0-162")
@pytest.mark.parametrize("query", QUERIES)
async def test_what_names_no_search_type_is_literal(
    literal: Searching, searching: Searching, truth: Truth, query: str
) -> None:
    answer = await literal.search(query)
    assert without_times(answer) == without_times(await searching.search(query, **LITERAL))
    assert answer["metadata"]["search_type_used"] == "semantic"
    are_the_same(await literal.skills(query), await truth.skills_for(query, 5, 0.4))
    are_the_same(await literal.tools(query), await truth.items_for(query, None, 10, 0.3))


@pytest.mark.states("S0-018")
async def test_a_search_type_that_is_named_wins(literal: Searching, searching: Searching) -> None:
    request: dict[str, Any] = {"search_type": "hybrid"}
    answer = await literal.search("read a file", **request)
    assert without_times(answer) == without_times(await searching.search("read a file"))
    assert answer["metadata"]["search_type_used"] == "hybrid"
