"""The log of tool searches over HTTP and by command, on the real engines."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.conftest import Installation
from tests.contracts.search_log_builders import NOW, logged, missed
from tests.e2e.commands import run_here
from tests.unit.tools.skills_http.builders import Managed
from toolscript.server.serve import open_app
from toolscript.tools.postgres.search_log import PostgresSearchLog

pytestmark = pytest.mark.requirement("DOC-007")

SEARCHES, GAPS = "/api/v1/tool_searches", "/api/v1/tool_searches/gaps"


@pytest.fixture(autouse=True)
async def empty(managed: Managed) -> AsyncIterator[None]:
    yield
    async with managed.stores.pool.connection() as conn:
        await conn.execute("TRUNCATE mcp.tool_searches, mcp.tool_search_scopes")


async def test_a_search_without_a_good_match_is_listed_and_counted_as_a_gap(managed: Managed) -> None:
    logging = Installation({
        **managed.installation.environment,
        "TOOLSCRIPT_ENVIRONMENT": "development",
        "TOOLSCRIPT_TOOL_SEARCH_LOG": "text",
    })  # fmt: skip
    asked = {"query": "Blimp zorkmid?", "strategy": "direct"}
    async with open_app(logging.settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = [(await client.post("/api/v1/tools/search", json=asked)).json() for _ in range(3)]
            assert (await client.get(GAPS)).json()["log"] == "text"
    page = await managed.ask("GET", SEARCHES, good_match=False)
    assert [search["query_id"] for search in page["results"]] == [
        answer["query_id"] for answer in reversed(answers)
    ]
    search = page["results"][0]
    assert (search["text"], search["channel"], search["namespaces"]) == ("Blimp zorkmid?", "http", ["default"])
    assert search["unmatched_words"] == answers[-1]["metadata"]["unmatched_words"]
    report = await managed.ask("GET", GAPS, days=1)
    (gap,) = report["results"]
    assert (gap["text"], gap["count"], gap["last_at"]) == ("Blimp zorkmid?", 3, search["at"])
    assert {name: report[name] for name in ("days", "counted", "complete", "log")} == {
        "days": 1,
        "counted": 3,
        "complete": True,
        "log": "off",
    }


async def test_the_list_is_paged_and_filtered(managed: Managed) -> None:
    entries = [logged(number, good_match=number % 2 == 0) for number in range(5)]
    await PostgresSearchLog(managed.stores.pool).write([*entries, logged(9, namespaces=("red",))])
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await managed.ask("GET", SEARCHES, limit=2, cursor=cursor, namespace="default")
        ids += [search["query_id"] for search in page["results"]]
        cursor = page["next_cursor"]
    assert ids == [entry.query_id for entry in reversed(entries)]
    good = await managed.ask("GET", SEARCHES, good_match=True, namespace="default")
    assert [search["query_id"] for search in good["results"]] == [entries[4].query_id, *ids[2::2]]
    assert len((await managed.ask("GET", SEARCHES))["results"]) == 6


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        (SEARCHES, {"days": 0}, "days"),
        (SEARCHES, {"days": 367}, "days"),
        (SEARCHES, {"cursor": "abc"}, "cursor"),
        (SEARCHES, {"cursor": "InhgeSI"}, "cursor"),
        (GAPS, {"limit": 201}, "limit"),
        (GAPS, {"days": 367}, "days"),
        (GAPS, {"namespace": "No Name"}, "namespace"),
    ],
)
async def test_a_wrong_parameter_is_refused(
    managed: Managed, path: str, query: dict[str, Any], field: str
) -> None:
    error = await managed.refused("GET", path, 422, **query)
    assert field in json.dumps(error["details"])


async def test_only_those_who_manage_a_namespace_read_the_log(managed: Managed) -> None:
    outside = httpx2.ASGITransport(managed.client._transport.app, client=("203.0.113.7", 1))  # type: ignore[attr-defined]
    async with httpx2.AsyncClient(transport=outside, base_url="http://127.0.0.1") as stranger:
        for path in (SEARCHES, GAPS):
            assert (await stranger.get(path)).status_code in (401, 403)


async def test_the_commands_print_what_http_answers(managed: Managed) -> None:
    environment = managed.installation.environment
    tool = (await managed.stores.catalog.scan(0, 1))[0].id
    await PostgresSearchLog(managed.stores.pool).write([
        logged(1, text="send a letter"),
        missed(2, "book a \x1b[31mflight", tool_id=tool, confidence=0.125),
        missed(3, "Book a [U+001B][31mflight!", namespaces=("red",)),
    ])  # fmt: skip

    def command(*arguments: str) -> str:
        return run_here(environment, "tools", *arguments).stdout

    listed = json.loads(await asyncio.to_thread(command, "searches", "--no-match", "--days", "2", "--json"))
    assert listed == await managed.ask("GET", SEARCHES, good_match=False, days=2)
    assert len(listed["results"]) == 2
    table = await asyncio.to_thread(command, "searches", "--namespace", "default")
    assert f"{NOW:%Y-%m-%d}" in table
    assert table.splitlines()[-1].endswith("send a letter")
    gaps = json.loads(await asyncio.to_thread(command, "gaps", "--json"))
    assert gaps == await managed.ask("GET", GAPS)
    assert [gap["count"] for gap in gaps["results"]] == [2]
    table = await asyncio.to_thread(command, "gaps", "--namespace", "default", "--limit", "5")
    assert "0.12" in table
    assert "\x1b" not in table
    empty = await asyncio.to_thread(command, "gaps", "--namespace", "blue")
    assert "TOOLSCRIPT_TOOL_SEARCH_LOG" in empty
