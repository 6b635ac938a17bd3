"""GET /api/v1/activity: what was done, the newest first, page by page; and whose requests are logged as whose."""

from typing import Any

import pytest
from starlette.applications import Starlette

from tests.doubles import MemoryActivity
from tests.unit.gateway.http.conftest import furnished_world
from tests.unit.gateway.http.requests import ask
from tests.unit.gateway.runtime.serving import client_of, open_app, serving
from toolscript import AsyncClient
from toolscript.gateway.activity import ActivityFilter
from toolscript.gateway.callers import CLIENT_HEADER, client_is
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.recording import RecordedGateway

pytestmark = pytest.mark.requirement("GW-005", "AP-001")

PATH = "/api/v1/activity"


async def entries(app: Starlette, query: str = "") -> list[dict[str, Any]]:
    reply = await ask(app, f"{PATH}{query}")
    assert reply.status == 200, reply.body
    return list(reply.json["results"])


async def test_entries_are_the_newest_first_with_all_their_fields(app: Starlette) -> None:
    running, unknown, done, search = await entries(app)
    assert (running["outcome"], running["took_ms"], running["result_bytes"]) == ("running", None, None)
    assert (unknown["outcome"], unknown["error"], unknown["client"]) == ("unknown", "CANCELLED", "cursor")
    assert done == {
        "id": 2,
        "action": "call",
        "started_at": "2023-11-14T22:13:20.125+00:00",
        "took_ms": 41.5,
        "client": "cursor",
        "server": "files",
        "tool": "read_file",
        "outcome": "ok",
        "error": None,
        "argument_bytes": 20,
        "result_bytes": 124,
        "estimated_tokens": 32,
        "arguments": {"path": "a"},
    }
    assert (search["action"], search["server"], search["tool"]) == ("search", None, None)


async def test_pages_follow_each_other_until_the_last(app: Starlette) -> None:
    first = (await ask(app, f"{PATH}?limit=3")).json
    last = (await ask(app, f"{PATH}?limit=3&cursor={first['next_cursor']}")).json
    assert [entry["id"] for entry in first["results"] + last["results"]] == [4, 3, 2, 1]
    assert last["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("?client=cli", [1]),
        ("?server=files&outcome=ok", [2]),
        ("?tool=files__read_file&client=claude", [4]),
        ("?server=nobody", []),
        ("?outcome=", [4, 3, 2, 1]),
    ],
)
async def test_filters_narrow_it_down(app: Starlette, query: str, ids: list[int]) -> None:
    assert [entry["id"] for entry in await entries(app, query)] == ids


@pytest.mark.parametrize(
    ("query", "field"), [("?limit=0", "limit"), ("?limit=201", "limit"), ("?outcome=fine", "outcome")]
)
async def test_a_parameter_out_of_range_is_refused(app: Starlette, query: str, field: str) -> None:
    reply = await ask(app, f"{PATH}{query}")
    assert reply.status == 422
    assert reply.error["details"]["field"] == field


async def test_a_cursor_of_another_list_is_refused(app: Starlette) -> None:
    reply = await ask(app, f"{PATH}?cursor=ImZpbGVzIg")
    assert reply.status == 422
    assert "no cursor of this list" in reply.error["message"]


async def test_without_a_log_there_are_no_entries() -> None:
    async with furnished_world() as world:
        assert await entries(open_app(world.gateway)) == []


async def test_the_python_client_lists_it_over_all_pages(app: Starlette) -> None:
    async with serving(app) as url, AsyncClient(url) as client:
        entries = [entry async for entry in client.activity.list(page_size=1)]
        unknown = [entry.client async for entry in client.activity.list(outcome="unknown")]
    assert [entry.id for entry in entries] == [4, 3, 2, 1]
    assert unknown == ["cursor"]


async def test_requests_are_logged_as_those_of_their_clients() -> None:
    log = MemoryActivity()
    async with furnished_world() as world:
        gateway = RecordedGateway(world.gateway, log)
        app = open_app(gateway, activity=log)
        body = b'{"id": "files__read_file"}'
        await ask(app, "/api/v1/tools/call", method="POST", body=body)
        await ask(app, "/tools/files__read_file", (CLIENT_HEADER, "an%20editor%20%E2%9C%93"), method="POST")
        async with client_of(gateway) as client:
            with client_is("日本 cli"):
                await client.call("files__read_file", {})
                await client.search(LocalQuery("read a file"))
            await client.call("files__read_file", {})
    clients = [record.entry.client for record in await log.page(ActivityFilter(), None, 10)]
    assert clients == ["python", "日本 cli", "日本 cli", "an editor ✓", "http"]
