"""Names in a server's metadata are resolved before they are connected to: a public one leads nowhere private."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.oauth import addresses
from toolscript.core.mcp_client.oauth.addresses import checked_addresses
from toolscript.core.mcp_client.oauth.challenge import Challenge
from toolscript.core.mcp_client.oauth.discovery import discover
from toolscript.core.mcp_client.oauth.exchanges import post_credentials, post_json, send
from toolscript.core.mcp_client.oauth.grant import Registration

pytestmark = pytest.mark.requirement("TS-010")

PUBLIC, INSIDE = "https://mcp.example/mcp", "https://mcp.corp/mcp"
PLACES = {
    "mcp.example": ["93.184.216.34"],
    "login.example": ["93.184.216.35", "2606:2800:220:1::1"],
    "mcp.corp": ["10.1.2.3"],
    "login.corp": ["10.1.2.4"],
    "mixed.corp": ["10.1.2.5", "93.184.216.36"],
    "here.example": ["127.0.0.1"],
    "here6.example": ["::1"],
    "nowhere.example": ["0.0.0.0"],
    "net.example": ["192.168.1.1"],
    "one-of-two.example": ["93.184.216.37", "10.0.0.1"],
    "cloud.example": ["169.254.169.254"],
    "link.example": ["fe80::1%eth0"],
    "own.example": ["fd00:ec2::254"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "nat64.example": ["64:ff9b::a00:1"],
    # Where a network has version 6 alone, this is how a public address of version 4 looks.
    "translated.example": ["64:ff9b::5db8:d822"],
}
PUBLIC_NAMES = ("mcp.example", "login.example", "translated.example")
PRIVATE = [name for name in PLACES if name not in PUBLIC_NAMES and not name.endswith(".corp")]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were resolved, by a resolver that knows these alone, and no proxy."""
    names: list[str] = []

    async def resolve(host: str) -> Sequence[str]:
        names.append(host)
        return PLACES.get(host, ())

    monkeypatch.setattr(addresses, "addresses_of", resolve)
    monkeypatch.setattr(addresses, "getproxies", dict)
    return names


@pytest.mark.parametrize("name", PRIVATE)
async def test_a_public_server_leads_to_no_private_address(name: str) -> None:
    url = f"https://{name}/token"
    with pytest.raises(ServerRejected, match="nothing was sent"):
        await checked_addresses(url, PUBLIC)
    sending: list[Any] = [
        send("GET", url, server_url=PUBLIC),
        post_json(url, {}, PUBLIC),
        post_credentials(url, {"code": "secret"}, Registration("me"), PUBLIC),
    ]
    for request in sending:
        with pytest.raises(ServerRejected, match="nothing was sent"):
            await request


async def test_a_public_address_that_a_network_translates_is_public() -> None:
    assert await checked_addresses("https://translated.example/token", PUBLIC) == ["64:ff9b::5db8:d822"]


async def test_a_server_that_looks_private_by_one_of_its_addresses_is_public() -> None:
    with pytest.raises(ServerRejected):
        await checked_addresses("https://login.corp/token", "https://mixed.corp/mcp")


async def test_public_names_are_connected_to_at_the_addresses_that_were_checked(asked: list[str]) -> None:
    assert await checked_addresses("https://login.example/token", PUBLIC) == PLACES["login.example"]
    assert asked == ["login.example"]


async def test_a_name_that_nobody_knows_cannot_be_reached() -> None:
    with pytest.raises(ServerUnavailable, match=r"unknown\.example cannot be reached"):
        await checked_addresses("https://unknown.example/", PUBLIC)


async def test_a_server_inside_may_sign_in_inside_but_not_at_this_machine() -> None:
    assert await checked_addresses("https://login.corp/token", INSIDE) == ["10.1.2.4"]
    assert await checked_addresses("https://login.corp/token", "https://10.9.9.9/mcp") == ["10.1.2.4"]
    with pytest.raises(ServerRejected):
        await checked_addresses("https://here.example/", INSIDE)


async def test_what_a_proxy_resolves_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "getproxies", lambda: {"https": "http://proxy.corp:3128"})
    assert await checked_addresses("https://login.example/token", PUBLIC) == ()
    assert await checked_addresses("https://unknown.example/", PUBLIC) == ()
    with pytest.raises(ServerRejected):
        await checked_addresses("https://net.example/", PUBLIC)


async def test_metadata_of_a_public_server_reach_no_private_name() -> None:
    spec = ServerSpec("remote", Transport.HTTP, url=PUBLIC)
    challenge = Challenge(resource_metadata="https://cloud.example/latest")
    with pytest.raises(ServerRejected, match=r"cloud\.example, which resolves to an address of this machine"):
        await discover(spec, challenge)


@asynccontextmanager
async def answering(seen: list[bytes]) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        body = json.dumps({"fine": True}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, family=socket.AF_INET) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_server_of_this_machine_is_reached_by_name_at_the_address_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PLACES, "auth.localhost", ["127.0.0.2", "127.0.0.1"])
    seen: list[bytes] = []
    async with answering(seen) as port:
        answer = await send("GET", f"http://auth.localhost:{port}/x", server_url="http://127.0.0.1:1/mcp")
    assert answer.to_json() == {"fine": True}
    assert f"host: auth.localhost:{port}".encode() in seen[0].lower()
