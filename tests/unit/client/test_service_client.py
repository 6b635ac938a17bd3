"""The service client with an unreachable service, another server, or a refusal."""

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
from toolscript.tools.schemas.search import SkillSearchAnswer, ToolSearchAnswer

pytestmark = pytest.mark.slow

EMPTY = json.loads(ToolSearchAnswer.of(ToolAnswer("x", (), 0, "hybrid", Timings()), "1").model_dump_json())
BROKEN_LISTS: list[object] = [None, {}, [3], [{}]]


def other_server(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status, headers)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


async def search(url: str, **more: Any) -> tuple[ToolAnswer, Any]:
    return await asyncio.to_thread(ServiceClient(url, **more).search, {"query": "x"})


async def skills(url: str, **more: Any) -> tuple[SkillAnswer, Any]:
    return await asyncio.to_thread(ServiceClient(url, **more).skills, {"query": "x"})


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://localhost", "http://", "http://localhost:99999"])
def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidRequest, match="not the address of a service"):
        ServiceClient(url)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>welcome</html>", b"3", b"null", b"{}", b"\xff", b"[" * 99999, b'[{"id": 3}]', b'"text"'),
        *(json.dumps({**EMPTY, "results": broken}).encode() for broken in BROKEN_LISTS),
        json.dumps({**EMPTY, "metadata": {}}).encode(),
        json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "search_type": 3}}).encode(),
        json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "index_version": None}}).encode(),
        json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "degraded": "skills"}}).encode(),
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_another_server_is_not_mistaken_for_a_service(body: bytes) -> None:
    async with serving(other_server(body)) as url:
        for ask in (search, skills):
            with pytest.raises(Unavailable, match="is not a service, or it runs another version") as refused:
                await ask(url)
            assert "toolscript serve" in refused.value.hint


async def test_an_answer_is_returned_parsed_and_as_json() -> None:
    async with serving(other_server(json.dumps({**EMPTY, "new": 1}).encode())) as url:
        answer, data = await search(url)
    assert (answer.query, answer.hits, data) == ("x", (), {**EMPTY, "new": 1})


async def test_an_unknown_strategy_is_not_an_answer() -> None:
    body = json.dumps({**EMPTY, "metadata": {**EMPTY["metadata"], "strategy": "magic"}}).encode()
    async with serving(other_server(body)) as url:
        with pytest.raises(Unavailable, match="is not a service"):
            await search(url)


async def test_parts_that_failed_in_skill_matching_are_returned() -> None:
    expected = SkillAnswer((), ("embedding", "skills"), "keyword", index="abc")
    body = SkillSearchAnswer.of(expected, "1").model_dump_json().encode()
    async with serving(other_server(body)) as url:
        assert (await skills(url))[0] == expected


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((400, InvalidRequest), (401, Unauthorized), (403, Forbidden), (404, NotFound), (422, InvalidRequest)),
        *((500, Unavailable), (503, Unavailable), (418, Unavailable)),
    ],
)
async def test_a_refusal_has_status_code_and_message(status: int, kind: type[ToolscriptError]) -> None:
    body = json.dumps(envelope("SOME_CODE", "not today", {"hint": "come tomorrow", "field": "q"})).encode()
    async with serving(other_server(body, status)) as url:
        with pytest.raises(kind, match=f"the service answered {status} SOME_CODE: not today") as refused:
            await search(url)
    assert (refused.value.hint, refused.value.details) == ("come tomorrow", {"field": "q"})


async def test_an_internal_error_has_the_request_id_of_the_log() -> None:
    body = json.dumps(envelope("INTERNAL_ERROR", "our fault")).encode()
    async with serving(other_server(body, 500, {"X-Request-Id": "abc123"})) as url:
        with pytest.raises(Unavailable) as refused:
            await search(url)
    assert "abc123" in refused.value.hint


@pytest.mark.parametrize("status", [404, 500, 502])
async def test_an_error_in_another_schema_is_not_from_a_service(status: int) -> None:
    async with serving(other_server(b"<html>no</html>", status)) as url:
        with pytest.raises(Unavailable, match="is not a service"):
            await search(url)


async def test_a_service_may_live_below_a_path() -> None:
    async def answer(request: Request) -> Response:
        metadata = {**EMPTY["metadata"], "index_version": request.url.path}
        return Response(json.dumps({**EMPTY, "metadata": metadata}))

    async with serving(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as url:
        assert (await search(f"{url}/below/"))[0].index == "/below/api/v1/tools/search"


async def test_an_unreachable_service_is_unavailable_and_the_password_is_hidden() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"the service at 127.0.0.1:{port} does not answer") as refused:
            await search(f"http://me:hunter2@127.0.0.1:{port}")
    assert "hunter2" not in refused.value.message
    assert "`toolscript serve` starts one" in refused.value.hint


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".com", "double..dot"])
async def test_an_unresolvable_name_is_unavailable(host: str) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        await search(f"http://{host}:1")


async def test_a_service_that_closes_the_connection_is_unavailable() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        with pytest.raises(Unavailable, match="does not answer"):
            await search(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


async def test_the_timeout_can_be_raised_for_a_slow_service() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(Unavailable, match="timed out") as refused:
            await search(f"http://127.0.0.1:{mute.getsockname()[1]}", seconds=0.1)
    assert "--timeout" in refused.value.hint
