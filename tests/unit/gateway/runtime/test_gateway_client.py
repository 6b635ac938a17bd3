"""A gateway in another process that is not there, is no gateway, or wants a token."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import client_of, serving
from toolscript.core.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    ServerRejected,
    ToolscriptError,
    Unauthorized,
    Unavailable,
)
from toolscript.gateway.client import GatewayClient
from toolscript.gateway.model import Gateway, LocalQuery

pytestmark = [pytest.mark.requirement("TS-008"), pytest.mark.slow]

ASK: list[Callable[[Gateway], Awaitable[object]]] = [
    lambda gateway: gateway.search(LocalQuery("x")),
    lambda gateway: gateway.items(),
    lambda gateway: gateway.call("a__b", {}),
    lambda gateway: gateway.servers(),
    lambda gateway: gateway.health(),
]


def stranger(body: bytes, status: int = 200) -> Starlette:
    async def answer(_: Request) -> Response:
        return Response(body, status)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


@pytest.mark.parametrize(
    "url",
    ["", "localhost", "127.0.0.1:7355", "ftp://localhost", "http://", "http://localhost:99999", "http://[::1"],
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
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
async def test_what_is_no_gateway_is_told_from_one(body: bytes) -> None:
    async with serving(stranger(body)) as url:
        for ask in ASK:
            with pytest.raises(Unavailable, match="is no gateway") as refused:
                await ask(GatewayClient(url))
            assert refused.value.hint


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, Forbidden), (404, NotFound), (500, Unavailable), (502, ServerRejected), (418, Unavailable)],
)
async def test_an_error_in_another_shape_is_told_by_its_status(status: int, kind: type[ToolscriptError]) -> None:
    async with serving(stranger(b"<html>no</html>", status)) as url:
        with pytest.raises(kind, match=f"the gateway answered {status}"):
            await GatewayClient(url).health()


async def test_nobody_there_is_unavailable_and_no_password_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="does not answer") as refused:
            await GatewayClient(f"http://me:hunter2@127.0.0.1:{port}").health()
    assert f"127.0.0.1:{port}" in refused.value.message
    assert "hunter2" not in refused.value.message


async def test_one_that_never_answers_is_waited_for_no_longer_than_that() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        client = GatewayClient(f"http://127.0.0.1:{mute.getsockname()[1]}", seconds=0.1, call_seconds=0.1)
        with pytest.raises(Unavailable, match="timed out"):
            await client.health()
        with pytest.raises(Unavailable, match="timed out"):
            await client.call("a__b", {})


async def test_one_that_hangs_up_is_unavailable() -> None:
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
                await GatewayClient(f"http://{client._address.place}", token=wrong).health()


async def test_a_gateway_may_live_below_a_path() -> None:
    async with client_of(GatewayDouble()) as client:
        with pytest.raises(ToolscriptError, match="/below/health"):
            await GatewayClient(f"http://{client._address.place}/below/").health()


async def test_a_gateway_that_was_started_anew_elsewhere_is_found_again() -> None:
    addresses: list[str] = []
    async with serving(stranger(b"{}")) as gone:
        client = GatewayClient(gone, find_again=lambda: (addresses[0], "") if addresses else None)
    with pytest.raises(Unavailable):
        await client.typescript()
    async with serving(stranger(b"// types")) as anew:
        addresses.append(anew)
        assert await client.typescript() == "// types"
