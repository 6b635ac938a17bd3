"""The setting decides whether tool searches over HTTP and MCP are logged, and which details."""

import json
from typing import Any

import pytest

from tests.unit.server.composition.observed_products import served, some_products
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.server.settings import load_settings

pytestmark = [pytest.mark.requirement("DOC-007")]

TEXT = "read a file of zebras"
ROWS = """
SELECT to_jsonb(searches) FROM mcp.tool_searches AS searches ORDER BY at
"""


async def logged(pool: Pool) -> list[dict[str, Any]]:
    async with pool.connection() as conn:
        return [row[0] for row in await (await conn.execute(ROWS)).fetchall()]  # type: ignore[misc]


@pytest.mark.parametrize(("kept", "text"), [("figures", ""), ("text", TEXT)])
async def test_every_search_for_tools_is_logged_with_what_the_setting_keeps(
    pool: Pool, kept: str, text: str
) -> None:
    async with served(await some_products(), {"tool_search_log": kept}, pool) as service:
        answer = (await service.http.post("/api/v1/tools/search", json={"query": TEXT})).json()
        await service.find_tools(TEXT, search_type="keyword")
        await service.http.get("/api/v1/search/tools", params={"query": TEXT})
        await service.mcp.answer("search_tools", {"query": TEXT})
        assert (await service.http.get("/api/v1/search/skills", params={"query": TEXT})).status_code == 200
        assert (await service.http.post("/api/v1/tools/search", json={"query": " "})).status_code == 400
    rows = await logged(pool)
    assert rows[0]["query_id"] == answer["query_id"]
    assert rows[0]["tool_id"] == answer["results"][0]["id"]
    assert rows[0]["hits"] == len(answer["results"])
    assert [(row["channel"], row["search_type"], row["strategy"], row["scope"]) for row in rows] == [
        ("http", "hybrid", rows[0]["strategy"], "default"),
        ("http", "keyword", rows[1]["strategy"], "default"),
        ("http", "hybrid", "direct", "default"),
        ("mcp", "hybrid", rows[3]["strategy"], "default"),
    ]
    assert len({row["query_id"] for row in rows}) == 4
    assert {row["text"] for row in rows} == {text}
    assert ("zebra" in json.dumps(rows)) is (kept == "text")
    assert all((row["text_key"] is not None) is (kept == "text") for row in rows)


async def test_without_the_setting_nothing_is_logged(pool: Pool) -> None:
    assert load_settings().tool_search_log == ""
    async with served(await some_products(), {}, pool) as service:
        assert (await service.find_tools(TEXT)).status_code == 200
        await service.mcp.answer("search_tools", {"query": TEXT})
    assert await logged(pool) == []


async def test_an_unavailable_database_fails_no_search_and_the_loss_is_counted() -> None:
    nowhere = "postgresql://somebody@127.0.0.1:1/nowhere"
    settings = {"metrics": True, "tool_search_log": "text"}
    async with open_pool(nowhere, size=1, wait_seconds=0.1) as pool:
        async with served(await some_products(), settings, pool) as service:
            statuses = [(await service.find_tools(TEXT)).status_code for _ in range(5)]
        assert statuses == [200] * 5
        page = service.page
    assert value(page, "toolscript_tool_search_log_dropped_total", reason="failed") == 5
    assert value(page, "toolscript_tool_search_log_dropped_total", reason="full") == 0
    assert value(page, "toolscript_query_log_dropped_total", reason="failed") == 0
