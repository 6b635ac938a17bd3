"""The settings decide where searches over HTTP are logged, and which details."""

import json
from pathlib import Path

import pytest

from tests.unit.server.composition.observed_app import client_of, observed_app, put_two, settings_of, watched
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.errors import SetupError
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.server.observability import open_observability

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
