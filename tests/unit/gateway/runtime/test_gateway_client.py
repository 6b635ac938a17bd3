"""Client of a gateway that is down, is another server, or requires a token."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import client_of, serving
from toolscript.core.errors import (
    InvalidRequest,
    ToolscriptError,
    Unauthorized,
    Unavailable,
)
from toolscript.gateway.approvals import Decision, Review, Status
from toolscript.gateway.callers import CallTerms, on_terms
from toolscript.gateway.client import GatewayClient, Place
from toolscript.gateway.model import Gateway, LocalQuery
from toolscript.gateway.openapi import MAX_DECIDED

pytestmark = [pytest.mark.requirement("TS-008"), pytest.mark.slow]

ASK: list[Callable[[Gateway], Awaitable[object]]] = [
    lambda gateway: gateway.search(LocalQuery("x")),
    lambda gateway: gateway.items(),
    lambda gateway: gateway.call("a__b", {}),
    lambda gateway: gateway.servers(),
    lambda gateway: gateway.health(),
]


def other_server(body: bytes, status: int = 200) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "127.0.0.1:7355", "ftp://localhost", "http://", "http://localhost:99999", "http://[::1"],
)
def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidRequest, match="not the address of a gateway"):
        GatewayClient(url)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>welcome</html>",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b"\xff",
        b"[" * 99999,
        b'{"servers": 3}',
        b'{"tools": [{}], "total": 1}',
        b'{"results": [{}]}',
        b'{"servers": [{"name": "a", "new": 1}]}',
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_a_server_that_is_not_a_gateway_is_recognised(body: bytes) -> None:
    async with serving(other_server(body)) as url:
        for ask in ASK:
            with pytest.raises(Unavailable, match="is not a gateway") as refused:
                await ask(GatewayClient(url))
            assert refused.value.hint


async def test_a_confirmation_is_of_its_tool_alone() -> None:
    confirmed: list[tuple[str, str]] = []

    async def answer(request: Request) -> Response:
        confirmed.append((request.path_params["path"], request.query_params.get("confirm", "")))
        return JSONResponse({"content": [], "isError": False})

    async with serving(Starlette(routes=[Route("/tools/{path}", answer, methods=["POST"])])) as url:
        with on_terms(CallTerms("files__write_file")):
            for tool in ("files__write_file", "mcp__toolscript__files__write_file", "files__delete_file"):
                await GatewayClient(url).call(tool, {})
    assert [confirm for _, confirm in confirmed] == ["true", "true", ""]


async def test_more_decisions_than_a_request_may_have_are_sent_in_parts() -> None:
    waiting = [
        Review(f"{number:032}", f"a__{number}", "tool", "a", str(number), Status.NEW, held=True, seen_at=0)
        for number in range(MAX_DECIDED + 1)
    ]
    gateway = GatewayDouble(waiting=waiting)
    async with client_of(gateway, token="t") as client:
        decided = await client.decide(Decision.APPROVE, [review.digest for review in waiting])
    assert len(decided) == len(waiting)
    assert [len(digests) for _, digests in gateway.decisions] == [MAX_DECIDED, 1]


@pytest.mark.parametrize("status", [403, 404, 418, 500, 502])
async def test_an_error_in_another_format_is_not_a_gateways(status: int) -> None:
    async with serving(other_server(b"<html>no</html>", status)) as url:
        with pytest.raises(Unavailable, match="is not a gateway"):
            await GatewayClient(url).health()


async def test_a_refused_connection_is_unavailable_and_the_message_has_no_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="does not answer") as refused:
            await GatewayClient(f"http://me:hunter2@127.0.0.1:{port}").health()
    assert f"127.0.0.1:{port}" in refused.value.message
    assert "hunter2" not in refused.value.message


async def test_a_silent_server_is_waited_for_no_longer_than_the_timeout() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        client = GatewayClient(f"http://127.0.0.1:{mute.getsockname()[1]}", seconds=0.1, call_seconds=0.1)
        with pytest.raises(Unavailable, match="timed out"):
            await client.health()
        with pytest.raises(Unavailable, match="timed out"):
            await client.call("a__b", {})


async def test_a_server_that_closes_the_connection_is_unavailable() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="does not answer"):
            await GatewayClient(f"http://127.0.0.1:{port}").health()


async def test_the_token_opens_and_another_does_not() -> None:
    async with client_of(GatewayDouble(), token="right") as client:
        assert (await client.health()).ready
        for wrong in ("", "wrong"):
            with pytest.raises(Unauthorized):
                await GatewayClient(client.url, token=wrong).health()


async def test_a_gateway_may_be_served_below_a_path() -> None:
    async with client_of(GatewayDouble()) as client:
        with pytest.raises(ToolscriptError, match="/below/health"):
            await GatewayClient(f"{client.url}/below/").health()


async def test_a_gateway_restarted_at_another_address_is_found() -> None:
    addresses: list[str] = []
    async with serving(other_server(b"{}")) as gone:
        client = GatewayClient(gone, find_again=lambda: Place(addresses[0]) if addresses else None)
    with pytest.raises(Unavailable):
        await client.typescript()
    async with serving(other_server(b"// types")) as restarted:
        addresses.append(restarted)
        assert await client.typescript() == "// types"
