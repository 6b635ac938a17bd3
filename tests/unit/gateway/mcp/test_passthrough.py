"""/mcp/{server}: proxies one server, with its own credentials and without the client's."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx2
import pytest
from mcp import Client
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.serving import serve
from tests.unit.gateway.mcp.through import serve_everything_through_the_gateway, serve_passthrough
from toolscript.core.mcp_client.model import ServerSpec, Transport

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SECONDS = 20

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]


@dataclass
class Upstream:
    """A server with scripted answers that records its requests."""

    answer: Callable[[Request], Awaitable[Response]]
    requests: list[tuple[dict[str, str], bytes, str]] = field(default_factory=list)

    async def handle(self, request: Request) -> Response:
        self.requests.append((dict(request.headers), await request.body(), str(request.url.query)))
        return await self.answer(request)


def answering(status: int = 200, body: str = "{}", **headers: str) -> Upstream:
    async def answer(_request: Request) -> Response:
        return Response(body, status, {name.replace("_", "-"): value for name, value in headers.items()})

    return Upstream(answer)


@asynccontextmanager
async def in_front_of(upstream: Upstream) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    methods = ["GET", "POST", "DELETE"]
    async with serve([Route("/rpc", upstream.handle, methods=methods)]) as address:
        headers = {"Authorization": "Bearer the-servers-own", "X-Key": "k"}
        spec = ServerSpec("up", Transport.HTTP, url=f"{address}/rpc?team=a", headers=headers)
        async with (
            serve_passthrough({"up": spec}.get) as front,
            httpx2.AsyncClient(trust_env=False, verify=False) as client,
        ):
            yield client, f"{front}/mcp/up"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_uses_tools_prompts_and_resources_of_the_server_itself(mode: str) -> None:
    async with serve_everything_through_the_gateway() as url, Client(url, mode=mode) as client:
        assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is a simple text")
        assert (await client.get_prompt("test_simple_prompt")).messages
        assert (await client.read_resource("test://static-text")).contents


async def test_the_clients_credentials_are_removed_and_the_servers_own_are_added() -> None:
    upstream = answering(content_type="application/json")
    async with in_front_of(upstream) as (client, url):
        principal = {
            "Authorization": "Bearer of-the-gateway",
            "Cookie": "a=b",
            "X-Other": "x",
            "Origin": "http://localhost:1",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "ping",
            "Mcp-Session-Id": "abc",
        }
        assert (await client.post(f"{url}?q=1", headers=principal, json=PING)).status_code == 200
    ((headers, body, query),) = upstream.requests
    assert json.loads(body) == PING
    assert query == "team=a"
    assert headers["authorization"] == "Bearer the-servers-own"
    assert headers["x-key"] == "k"
    kept = ("mcp-protocol-version", "mcp-method", "mcp-session-id")
    assert [headers[name] for name in kept] == ["2026-07-28", "ping", "abc"]
    assert headers.keys().isdisjoint({"cookie", "x-other", "origin"})


async def test_only_protocol_headers_of_the_server_are_returned() -> None:
    upstream = answering(404, "gone", content_type="text/plain", mcp_session_id="s1", set_cookie="a=b", server="x")
    async with in_front_of(upstream) as (client, url):
        answer = await client.post(url, json=PING)
    assert (answer.status_code, answer.text, answer.headers["mcp-session-id"]) == (404, "gone", "s1")
    assert "set-cookie" not in answer.headers


async def test_no_cookie_of_a_server_is_sent_with_another_request() -> None:
    upstream = answering(content_type="application/json", set_cookie="sid=1; Path=/")
    async with in_front_of(upstream) as (client, url):
        for _ in range(2):
            assert (await client.post(url, json=PING)).status_code == 200
    assert ["cookie" in headers for headers, _, _ in upstream.requests] == [False, False]


async def test_streams_that_stay_open_hold_up_no_request() -> None:
    done = asyncio.Event()

    async def answer(request: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            yield ": open\n\n"
            await done.wait()

        is_stream = request.method == "GET"
        return StreamingResponse(events(), media_type="text/event-stream") if is_stream else Response("{}")

    unlimited = httpx2.AsyncClient(trust_env=False, limits=httpx2.Limits(max_connections=None), timeout=SECONDS)
    async with in_front_of(Upstream(answer)) as (_, url), unlimited as client, AsyncExitStack() as streams:
        for _ in range(120):
            await streams.enter_async_context(client.stream("GET", url))
        assert (await client.post(url, json=PING)).status_code == 200
        done.set()


@pytest.mark.parametrize(
    ("upstream", "says"),
    [
        (answering(401, www_authenticate="Bearer"), "up refused our credentials"),
        (answering(307, location="http://elsewhere.example/"), "up has moved"),
    ],
)
async def test_errors_between_gateway_and_server_are_not_passed_on(upstream: Upstream, says: str) -> None:
    async with in_front_of(upstream) as (client, url):
        answer = await client.post(url, json=PING)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == says
    assert answer.headers.keys().isdisjoint({"www-authenticate", "location"})


async def test_chunks_of_a_stream_arrive_early_and_a_disconnect_is_noticed() -> None:
    gone = anyio.Event()

    async def pieces() -> AsyncIterator[str]:
        try:
            yield "data: 1\n\n"
            await anyio.sleep_forever()
        finally:
            gone.set()

    async def answer(_request: Request) -> Response:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    with anyio.fail_after(SECONDS):
        async with in_front_of(Upstream(answer)) as (client, url):
            async with client.stream("POST", url, json=PING) as stream:
                first = await anext(stream.aiter_lines())
            await gone.wait()
    assert first == "data: 1"


SPECS = {
    "local": ServerSpec("local", Transport.STDIO, command="x"),
    "narrowed": ServerSpec("narrowed", Transport.HTTP, url="http://127.0.0.1:9/", exclude_tools=("delete*",)),
    "silent": ServerSpec("silent", Transport.HTTP, url="http://127.0.0.1:9/"),
}


@pytest.mark.parametrize(
    ("server", "status", "code"),
    [
        ("nobody", 404, "NOT_FOUND"),
        ("local", 404, "NOT_FOUND"),
        ("narrowed", 403, "FORBIDDEN"),
        ("silent", 503, "UNAVAILABLE"),
    ],
)
async def test_a_server_that_cannot_be_reached_this_way_is_refused_with_the_reason(
    server: str, status: int, code: str
) -> None:
    async with serve_passthrough(SPECS.get) as front, httpx2.AsyncClient(trust_env=False, verify=False) as client:
        answer = await client.post(f"{front}/mcp/{server}", json=PING)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["details"]["hint"]


async def test_a_page_from_another_origin_is_refused() -> None:
    upstream = answering()
    async with in_front_of(upstream) as (client, url):
        answer = await client.post(url, headers={"Origin": "http://evil.example"}, json=PING)
    assert answer.status_code == 403
    assert upstream.requests == []
