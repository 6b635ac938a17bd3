"""How many calls of Qdrant in a row a search waits for: that is what an engine far away costs."""

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import httpx2
import pytest

from tests.conftest import Installation
from toolscript.core.qdrant import connection
from toolscript.core.retrieval.cache import TtlCache
from toolscript.server.serve import open_app
from toolscript.tools import skill_copy
from toolscript.tools.payload_cache import CACHE_SECONDS, CACHE_SIZE, PayloadCache

# Calls that are sent at the same time overlap for so long.
FAR_SECONDS = 0.2
# New words each time, so that no vector is cached; numbers are not corrected.
NUMBERS = itertools.count(100)


@pytest.fixture
async def client(installed: Installation) -> AsyncIterator[httpx2.AsyncClient]:
    more = {"TOOLSCRIPT_SKILL_COPY": "true", "TOOLSCRIPT_DEADLINE_SECONDS": "60"}
    async with open_app(Installation({**installed.environment, **more}).settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as opened:
            yield opened


async def search(client: httpx2.AsyncClient, strategy: str) -> None:
    query = f"create pull request {next(NUMBERS)}"
    asked = {"query": query, "strategy": strategy, "threshold": 0.0, "skill_threshold": 0.0}
    metadata = (await client.post("/api/v1/tools/search", json=asked)).json()["metadata"]
    assert (metadata["degraded"], metadata["strategy"]) == ([], strategy)


async def calls_in_a_row(client: httpx2.AsyncClient, strategy: str) -> int:
    """Count once what every process reads first is in memory, and where no payload is."""
    for _ in range(3):
        await search(client, strategy)
        # A copy of the skills is read in the background.
        await asyncio.sleep(0.3)
    answered, row = connection._Call.__call__, 0

    async def far(call: connection._Call, request: object, **given: Any) -> Any:
        nonlocal row
        place = row + 1
        await asyncio.sleep(FAR_SECONDS)
        answer = await answered(call, request, **given)
        row = max(row, place)
        return answer

    for each in [each for each in gc.get_objects() if isinstance(each, PayloadCache)]:
        each._points = TtlCache(CACHE_SIZE, CACHE_SECONDS)
    # On a busy machine a check of the copy takes long, too.
    with patch.object(connection._Call, "__call__", far), patch.object(skill_copy, "STALE_SECONDS", 60.0):
        await search(client, strategy)
    return row


@pytest.mark.parametrize(("strategy", "calls"), [("direct", 2), ("hierarchical", 3), ("hybrid", 3)])
async def test_a_tool_search_waits_for_few_calls_in_a_row(
    client: httpx2.AsyncClient, strategy: str, calls: int
) -> None:
    assert await calls_in_a_row(client, strategy) <= calls
