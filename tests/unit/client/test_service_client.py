"""A service in another process that is not there, is no service, or refuses."""

import asyncio
import json
import socket
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.gateway.runtime.serving import serving
from toolscript.client.http import ServiceClient
from toolscript.core.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    ToolscriptError,
    Unauthorized,
    Unavailable,
    envelope,
)
from toolscript.tools.model.answer import SkillAnswer, Timings, ToolAnswer
from toolscript.tools.schemas.search import SearchResponse

pytestmark = pytest.mark.slow

EMPTY = json.loads(SearchResponse.of(ToolAnswer("x", (), 0, "hybrid", Timings())).model_dump_json())
BROKEN_LISTS: list[object] = [None, {}, [3], [{}]]


def stranger(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status, headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


async def search(url: str, **more: Any) -> tuple[ToolAnswer, Any]:
    return await asyncio.to_thread(ServiceClient(url, **more).search, {"query": "x"})


async def skills(url: str, **more: Any) -> tuple[SkillAnswer, Any]:
    return await asyncio.to_thread(ServiceClient(url, **more).skills, {"query": "x"})


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://localhost", "http://", "http://localhost:99999"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidRequest, match="not the address of a service"):
        ServiceClient(url)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>welcome</html>", b"3", b"null", b"{}", b"\xff", b"[" * 99999, b'[{"id": 3}]', b'"text"'),
        *(json.dumps({**EMPTY, "tools": broken}).encode() for broken in BROKEN_LISTS),
        json.dumps({**EMPTY, "metadata": {}}).encode(),
        json.dumps({**EMPTY, "query": 3}).encode(),
        json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "strategy_used": "magic"}}).encode(),
        json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "final_count": 1, "degraded": "skills"}}).encode(),
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_what_is_no_service_is_told_from_one(body: bytes) -> None:
    async with serving(stranger(body)) as url:
        for ask in (search, skills):
            with pytest.raises(Unavailable, match="is no service, or one of another version") as refused:
                await ask(url)
            assert "toolscript serve" in refused.value.hint


async def test_an_answer_comes_read_and_as_it_was() -> None:
    async with serving(stranger(json.dumps({**EMPTY, "new": 1}).encode())) as url:
        answer, data = await search(url)
    assert (answer.query, answer.hits, data) == ("x", (), {**EMPTY, "new": 1})


async def test_what_failed_while_skills_were_matched_is_in_a_header() -> None:
    async with serving(stranger(b"[]", headers={"X-Toolscript-Degraded": "embedding,skills"})) as url:
        assert (await skills(url))[0] == SkillAnswer((), ("embedding", "skills"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((400, InvalidRequest), (401, Unauthorized), (403, Forbidden), (404, NotFound), (422, InvalidRequest)),
        *((500, Unavailable), (503, Unavailable), (418, Unavailable)),
    ],
)
async def test_a_refusal_says_status_code_and_message(status: int, kind: type[ToolscriptError]) -> None:
    body = json.dumps(envelope("SOME_CODE", "not today", {"hint": "come tomorrow", "field": "q"})).encode()
    async with serving(stranger(body, status)) as url:
        with pytest.raises(kind, match=f"the service answered {status} SOME_CODE: not today") as refused:
            await search(url)
    assert (refused.value.hint, refused.value.details) == ("come tomorrow", {"field": "q"})


async def test_a_fault_of_the_service_is_told_with_the_request_that_its_log_knows() -> None:
    body = json.dumps(envelope("INTERNAL_ERROR", "our fault")).encode()
    async with serving(stranger(body, 500, {"X-Request-Id": "abc123"})) as url:
        with pytest.raises(Unavailable) as refused:
            await search(url)
    assert "abc123" in refused.value.hint


@pytest.mark.parametrize("status", [404, 500, 502])
async def test_an_error_in_another_shape_comes_from_somebody_else(status: int) -> None:
    async with serving(stranger(b"<html>no</html>", status)) as url:
        with pytest.raises(Unavailable, match="is no service"):
            await search(url)


async def test_a_service_may_live_below_a_path() -> None:
    async def answer(request: Request) -> Response:
        return Response(json.dumps({**EMPTY, "query": request.url.path}))

    async with serving(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as url:
        assert (await search(f"{url}/below/"))[0].query == "/below/api/v1/search"


async def test_nobody_there_is_unavailable_and_no_password_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"the service at 127.0.0.1:{port} does not answer") as refused:
            await search(f"http://me:hunter2@127.0.0.1:{port}")
    assert "hunter2" not in refused.value.message
    assert "`toolscript serve` starts one" in refused.value.hint


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".com", "double..dot"])
async def test_a_name_that_leads_nowhere_is_unavailable(host: str) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        await search(f"http://{host}:1")


async def test_one_that_hangs_up_is_unavailable() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        with pytest.raises(Unavailable, match="does not answer"):
            await search(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_one_that_is_slow_can_be_given_longer() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(Unavailable, match="timed out") as refused:
            await search(f"http://127.0.0.1:{mute.getsockname()[1]}", seconds=0.1)
    assert "--timeout" in refused.value.hint
