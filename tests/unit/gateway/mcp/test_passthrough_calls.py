"""Calls through /mcp/{server} are logged as others are, and their answers pass unchanged."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client
from mcp_types import Implementation
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.serving import serve
from tests.unit.gateway.mcp.through import serve_everything
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.gateway.activity import ActivityFilter, Outcome, Record
from toolscript.gateway.mcp import passthrough_calls
from toolscript.gateway.mcp.passthrough import passthrough_asgi
from toolscript.gateway.mcp.passthrough_calls import PassthroughLog
from toolscript.gateway.mcp.passthrough_messages import Requested
from toolscript.testing import MemoryActivity

pytestmark = [pytest.mark.requirement("GW-005"), pytest.mark.slow]

Answer = Callable[[Request], Awaitable[Response]]
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read", "arguments": {"a": 1}}}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
JSON = {"Content-Type": "application/json"}
SECONDS = 20


@asynccontextmanager
async def passing(url: str, log: MemoryActivity) -> AsyncIterator[str]:
    spec = ServerSpec("up", Transport.HTTP, url=url)
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        app = passthrough_asgi({"up": spec}.get, client, log=PassthroughLog(log, arguments=True))
        async with serve([Route("/mcp/{server}", app)]) as front:
            yield f"{front}/mcp/up"


@asynccontextmanager
async def posting(answer: Answer, log: MemoryActivity) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    async with (
        serve([Route("/rpc", answer, methods=["POST"])]) as upstream,
        passing(f"{upstream}/rpc", log) as url,
        httpx2.AsyncClient(trust_env=False, verify=False, headers={"User-Agent": "agent/1.0"}) as client,
    ):
        yield client, url


async def rows(log: MemoryActivity) -> list[Record]:
    return [*await log.page(ActivityFilter(), None, 100)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_of_an_mcp_client_is_logged_with_its_name(mode: str) -> None:
    log = MemoryActivity()
    info = Implementation(name="an-editor", version="1")
    async with (
        serve_everything() as upstream,
        passing(upstream, log) as url,
        Client(url, mode=mode, client_info=info) as client,
    ):
        assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is a simple text")
        assert (await client.call_tool("test_error_handling", {})).is_error
        assert (await client.get_prompt("test_simple_prompt")).messages
    failed, done = await rows(log)
    assert (done.entry.client, done.entry.server, done.entry.tool) == ("an-editor", "up", "test_simple_text")
    assert (done.outcome, failed.outcome, failed.error) == (Outcome.OK, Outcome.ERROR, "TOOL_ERROR")
    assert done.result_bytes


async def rpc_error(_request: Request) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no"}})


async def refusal(_request: Request) -> Response:
    return Response("who are you", 403)


async def rejected_credentials(_request: Request) -> Response:
    return Response("", 401)


async def breakdown(_request: Request) -> Response:
    return Response("bad gateway", 502)


async def nonsense(_request: Request) -> Response:
    return Response("{", media_type="application/json")


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (rpc_error, Outcome.ERROR, "RPC_ERROR"),
        (refusal, Outcome.REFUSED, "HTTP_403"),
        (rejected_credentials, Outcome.REFUSED, "UNAVAILABLE"),
        (breakdown, Outcome.UNKNOWN, "HTTP_502"),
        (nonsense, Outcome.UNKNOWN, "CANCELLED"),
    ],
)
async def test_an_answer_that_is_no_result_is_told_from_one(answer: Answer, outcome: Outcome, error: str) -> None:
    log = MemoryActivity()
    async with posting(answer, log) as (client, url):
        await client.post(url, json=CALL)
    [row] = await rows(log)
    assert (row.outcome, row.error, row.entry.client) == (outcome, error, "agent")
    assert row.entry.arguments == '{"a":1}'


async def test_the_log_has_the_answer_before_the_client_does() -> None:
    log, seen, first_is_read = MemoryActivity(), list[str](), anyio.Event()

    async def events() -> AsyncIterator[str]:
        yield f"data: {json.dumps({'jsonrpc': '2.0', 'method': 'notifications/progress'})}\n"
        yield "\n"
        await first_is_read.wait()
        text = json.dumps(RESULT)
        yield f"event: message\r\ndata: {text[:20]}"
        yield f"{text[20:]}\r\n"
        yield "\r\n: the end\n\n"

    async def answer(_request: Request) -> Response:
        return StreamingResponse(events(), media_type="text/event-stream")

    async with posting(answer, log) as (client, url), client.stream("POST", url, json=CALL) as stream:
        async for line in stream.aiter_lines():
            [row] = await rows(log)
            seen.append(f"{row.outcome} {line[:5]}")
            first_is_read.set()
    assert seen[0] == "running data:"
    # The blank line ends the event: before it, a client has no answer.
    assert seen[-3:] == ["ok ", "ok : the", "ok "]


async def test_a_body_is_held_back_at_its_end_until_it_is_logged() -> None:
    log = MemoryActivity()
    was_sent = anyio.Event()

    class Witness(MemoryActivity):
        async def written(self) -> None:
            if (await rows(self))[0].outcome is Outcome.OK:
                assert not was_sent.is_set()

    log = Witness()

    async def answer(_request: Request) -> Response:
        return JSONResponse(RESULT)

    async with posting(answer, log) as (client, url):
        assert (await client.post(url, json=CALL)).json() == RESULT
        was_sent.set()
    [row] = await rows(log)
    assert (row.outcome, row.result_bytes) == (Outcome.OK, len(json.dumps(RESULT, separators=(",", ":"))))


async def test_an_answer_that_is_too_large_to_be_read_passes_and_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passthrough_calls, "MAX_READ", 100)
    large = {**RESULT, "result": {"content": [{"type": "text", "text": "x" * 10_000}]}}

    async def answer(request: Request) -> Response:
        if request.query_params.get("as") == "events":
            return Response(f"data: {json.dumps(large)}\n\n", media_type="text/event-stream")
        return JSONResponse(large)

    log = MemoryActivity()
    async with posting(answer, log) as (client, url):
        assert (await client.post(url, json=CALL)).json() == large
    [row] = await rows(log)
    assert row.outcome is Outcome.OK
    assert (row.result_bytes or 0) > 10_000


async def passed(chunks: list[bytes], log: MemoryActivity) -> list[bytes]:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    spec = ServerSpec("up", Transport.HTTP, url="http://up")
    calls = PassthroughLog(log).begin(spec, Headers(), Requested((CALL,)))
    return [chunk async for chunk in calls.watched({"content-type": "text/event-stream"}, 200, stream())]


def large_event(letters: int) -> bytes:
    result = {**RESULT, "result": {"content": [{"type": "text", "text": "x" * letters}]}}
    return b"data: " + json.dumps(result).encode()


async def test_a_large_event_in_many_chunks_is_looked_at_once() -> None:
    log, event = MemoryActivity(), large_event(6_000_000)
    chunks = [event[at : at + 16_384] for at in range(0, len(event), 16_384)] + [b"\n\n"]
    began = time.process_time()
    assert await passed(chunks, log) == chunks
    # Half a minute when each chunk has all before it searched again.
    assert time.process_time() - began < 3
    [row] = await rows(log)
    assert (row.outcome, row.result_bytes) == (Outcome.OK, len(event))


@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1_000])
async def test_events_are_found_however_they_are_cut(end: bytes, size: int) -> None:
    log, event = MemoryActivity(), large_event(50)
    stream = b": hello" + end + event + end + b": bye" + end
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert await passed(chunks, log) == chunks
    [row] = await rows(log)
    assert (row.outcome, row.result_bytes) == (Outcome.OK, len(event))


@pytest.mark.parametrize("size", [1, 64, 100_000])
async def test_an_event_that_is_too_large_to_be_read_passes_and_is_counted(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passthrough_calls, "MAX_READ", 100)
    log, event = MemoryActivity(), large_event(10_000)
    stream = b": hello\n\n" + event + b"\r\n\r\n"
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert await passed(chunks, log) == chunks
    [row] = await rows(log)
    assert (row.outcome, row.result_bytes) == (Outcome.OK, len(event))


async def test_a_client_that_leaves_makes_its_call_unknown() -> None:
    log, gone = MemoryActivity(), anyio.Event()

    async def events() -> AsyncIterator[str]:
        try:
            yield ": begun\n\n"
            await anyio.sleep_forever()
        finally:
            gone.set()

    async def answer(_request: Request) -> Response:
        return StreamingResponse(events(), media_type="text/event-stream")

    with anyio.fail_after(SECONDS):
        async with posting(answer, log) as (client, url):
            async with client.stream("POST", url, json=CALL) as stream:
                await anext(stream.aiter_lines())
            await gone.wait()
    [row] = await rows(log)
    assert (row.outcome, row.error) == (Outcome.UNKNOWN, "CANCELLED")


async def test_a_server_that_cannot_be_reached_refuses_the_call() -> None:
    log = MemoryActivity()
    async with (
        passing("http://127.0.0.1:9/", log) as url,
        httpx2.AsyncClient(trust_env=False, verify=False) as client,
    ):
        assert (await client.post(url, json=CALL)).status_code == 503
    [row] = await rows(log)
    assert (row.outcome, row.error) == (Outcome.REFUSED, "UNAVAILABLE")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1, null]",
        b'{"id": 1, "method": "tools/call"}',
        b'{"id": 1, "method": "tools/call", "params": []}',
        b'{"method": "tools/call", "params": {}}',
        b"[" * 100_000,
    ],
)
async def test_what_is_no_call_passes_without_an_entry(body: bytes) -> None:
    async def answer(request: Request) -> Response:
        return Response(await request.body())

    log = MemoryActivity()
    async with posting(answer, log) as (client, url):
        assert (await client.post(url, content=body, headers=JSON)).content == body
    assert await rows(log) == []
