"""The settings decide whether searches for tools and documents are logged, and which details."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.composition.observed_app import client_of, observed_app, put_two, settings_of, watched
from tests.unit.server.composition.observed_products import served, some_products
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.errors import SetupError
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.server.observability import open_observability
from toolscript.server.settings import load_settings

pytestmark = [pytest.mark.requirement("DOC-007")]

SEARCH = {"query": "where are the keys", "top_k": 3, "filters": {"must_not": [{"field": "a", "op": "exists"}]}}


@pytest.mark.parametrize(
    ("keeps", "text", "found"),
    [("figures", "", []), ("text", "where are the keys", []), ("results", "where are the keys", ["doc-1"])],
)
async def test_a_file_has_a_line_for_each_search(tmp_path: Path, keeps: str, text: str, found: list[str]) -> None:
    path = tmp_path / "queries.ndjson"
    async with watched({"query_log": str(path), "query_log_keeps": keeps}) as client:
        await put_two(client)
        answer = (await client.post("/search", json=SEARCH)).json()
        refused = await client.post("/search", json=SEARCH, headers={"authorization": "Bearer nobodys"})
        assert refused.status_code == 401
    (line,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert line["query_id"] == answer["query_id"]
    assert line["took_ms"] == answer["took_ms"]
    assert (line["tenant"], line["plan"], line["top_k"], line["filters"]) == ("ann", "unlimited", 3, 1)
    assert line["hits"] == len(answer["hits"]) > 0
    assert line["text"] == text
    assert line["found"][:1] == found


async def test_the_database_has_a_row_for_each_search(pool: Pool) -> None:
    async with watched({"query_log": "postgres", "query_log_keeps": "text"}, pool) as client:
        ids = [(await client.post("/search", json=SEARCH)).json()["query_id"] for _ in range(3)]
    async with pool.connection() as conn:
        rows = await (await conn.execute("SELECT query_id, tenant, text FROM documents.queries")).fetchall()
    assert sorted(rows) == sorted((item, "ann", SEARCH["query"]) for item in ids)


async def test_an_unavailable_database_fails_no_search_and_dropped_entries_are_counted() -> None:
    nowhere = "postgresql://somebody@127.0.0.1:1/nowhere"
    async with (
        open_pool(nowhere, size=1, wait_seconds=0.1) as pool,
        open_observability(settings_of({"metrics": True, "query_log": "postgres"}), pool) as observability,
        client_of(observed_app(observability)) as client,
    ):
        answers = [await client.post("/search", json=SEARCH) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert observability.metrics is not None
    assert value(observability.metrics.page(), "toolscript_query_log_dropped_total", reason="failed") == 5


async def test_a_place_that_cannot_be_written_to_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="query log"):
        async with watched({"query_log": str(tmp_path / "no" / "where")}):
            pass


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
