"""Tool searches are rate-limited like library searches: by address without a token, by tenant with one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.conftest import Installation
from toolscript.server.serve import open_app

pytestmark = pytest.mark.requirement("API-004", "OP-006")
SEARCHES = [("POST", ""), ("GET", "/tools?query=mail"), ("GET", "/skills?query=mail")]
PATH = "/api/v1/search"
SECRET = "of-the-administrator"


@pytest.fixture
def limited(filled: Installation) -> Installation:
    limits = {"TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "3", "TOOLSCRIPT_ADMIN_TOKEN": SECRET}
    return Installation({**filled.environment, **limits})


@asynccontextmanager
async def clients(installation: Installation) -> AsyncIterator[dict[str, httpx2.AsyncClient]]:
    """From two addresses."""
    async with open_app(installation.settings) as app:
        yield {
            address: httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app, client=(address, 1)), base_url="http://127.0.0.1"
            )
            for address in ("203.0.113.7", "203.0.113.8")
        }


async def ask(client: httpx2.AsyncClient, method: str, path: str, **headers: str) -> httpx2.Response:
    body = {"query": "send mail"} if method == "POST" else None
    return await client.request(method, PATH + path, json=body, headers=headers)


async def test_each_address_has_its_own_rate_limit_for_tool_searches(limited: Installation) -> None:
    async with clients(limited) as asking:
        item, other = asking.values()
        answers = [await ask(item, *search) for search in SEARCHES]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        left = [answer.headers["ratelimit-remaining"] for answer in answers]
        # A minute may end in between.
        assert left in (["2", "1", "0"], ["2", "1", "2"], ["2", "2", "1"])
        if left[-1] == "0":
            refused = await ask(item, *SEARCHES[0])
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
            assert int(refused.headers["retry-after"]) <= 60
        assert (await ask(other, *SEARCHES[0])).status_code == 200


@pytest.mark.parametrize(
    "path", ["/api/v1/tools", "/api/v1/skills", "/api/v1/tools/1", "/api/v1/knowledge/sources"]
)
async def test_lists_and_reads_of_an_address_count_as_its_searches_do(limited: Installation, path: str) -> None:
    async with clients(limited) as asking:
        item, other = asking.values()
        # Four in a row may begin in one minute and end in the next; eight do not.
        statuses = [(await item.get(path)).status_code for _ in range(8)]
        assert 429 in statuses
        assert (await ask(item, *SEARCHES[0])).status_code == 429 or statuses[-1] != 429
        assert (await other.get(path)).status_code != 429


async def test_administrators_are_not_rate_limited(limited: Installation) -> None:
    async with clients(limited) as asking:
        item, _ = asking.values()
        answers = [await ask(item, *SEARCHES[0], Authorization=f"Bearer {SECRET}") for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit-limit" not in answers[0].headers
