"""`/mcp` over HTTP: clients of every version, where requests may come from, how long and how many they may be."""

from collections.abc import AsyncIterator
from unittest.mock import patch

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.unit.server.mcp.builders import ACCEPT, CATALOG, LIBRARY, ME, Json, Plain, World, result_of, token
from toolscript.core.auth.model import Scope
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.server import mcp_endpoint
from toolscript.server.mcp import known_hosts

pytestmark = pytest.mark.requirement("KN-005")

RATES = {
    "ratelimit-limit": "2",
    "ratelimit-remaining": "1",
    "ratelimit-reset": "42",
    "ratelimit-policy": '"minute";q=2;w=60',
    "ratelimit": '"minute";r=1;t=42',
}


async def said(client: Plain, version: str, method: str, params: Json, number: int | None = 1) -> Json:
    """Send a message after a handshake; the oldest clients do not repeat their version."""
    named = {"MCP-Protocol-Version": version} if version >= "2025-06-18" and method != "initialize" else {}
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    output = body if number is None else {**body, "id": number}
    answer = await client.http.post("/mcp", json=output, headers={**ACCEPT, **named, **client.headers})
    assert "mcp-session-id" not in answer.headers
    return {"status": answer.status_code} if number is None else result_of(answer)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_an_old_client_shakes_hands_lists_and_calls(world: World, version: str) -> None:
    async with world.client() as client:
        request = {"protocolVersion": version, "capabilities": {}, "clientInfo": ME}
        welcome = await said(client, version, "initialize", request)
        assert welcome["protocolVersion"] == version
        assert await said(client, version, "notifications/initialized", {}, None) == {"status": 202}
        listed = await said(client, version, "tools/list", {})
        assert [tool["name"] for tool in listed["tools"]] == [*LIBRARY, *CATALOG]
        result = await said(
            client,
            version,
            "tools/call",
            {"name": "search_knowledge", "arguments": {"query": "sugar", "limit": 1}},
        )
        newest = await client.answer("search_knowledge", {"query": "sugar", "limit": 1})
        refused = await said(client, version, "tools/call", {"name": "search_documents", "arguments": {}})
    assert result["content"] == newest["content"]
    assert refused["error"]["message"] == "Unknown tool: search_documents"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(world: World, method: str) -> None:
    async with world.client() as client:
        refused = await client.http.request(method, "/mcp", headers=ACCEPT)
        session = await client.post("tools/list", shown={"Mcp-Session-Id": "0123456789abcdef"})
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert session.status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "search.example.com.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "search.example.com"}, 200),
        ({"Host": "search.example.com", "Origin": "https://search.example.com"}, 200),
        ({"Host": "10.1.2.3:8080"}, 200),
        ({"Host": "[::1]:8080", "Origin": "http://localhost:3000"}, 200),
    ],
)
async def test_only_known_hosts_and_origins_are_allowed(
    world: World, headers: dict[str, str], status: int
) -> None:
    world.settings = {"public_url": "https://search.example.com", "host": "10.1.2.3"}
    async with world.client() as client:
        answer = await client.post("tools/list", shown=headers)
    assert answer.status_code == status
    if status != 200:
        assert "TOOLSCRIPT_PUBLIC_URL" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("host", "public", "hosts"),
    [
        ("127.0.0.1", "", ["127.0.0.1"]),
        ("0.0.0.0", "", []),
        ("::", "http://[2001:db8::1]:9000/tools", ["[2001:db8::1]"]),
        ("fd00::1", "https://Search.Example.com", ["[fd00::1]", "search.example.com"]),
    ],
)
def test_known_hosts_are_the_public_url_and_the_bound_host(host: str, public: str, hosts: list[str]) -> None:
    assert known_hosts(Settings(host=host, public_url=public)) == hosts


@pytest.mark.parametrize("public", ["search.example.com", "ftp://search.example.com", "https://", "http://[1"])
def test_an_invalid_public_url_is_refused_at_startup(public: str) -> None:
    with pytest.raises(SetupError, match="TOOLSCRIPT_PUBLIC_URL"):
        known_hosts(Settings(public_url=public))


async def test_a_request_that_is_too_long_is_refused(world: World) -> None:
    async with world.client() as client:
        refused = await client.call("search_knowledge", {"query": "x" * 70_000})
    assert (refused.status_code, refused.json()["error"]["message"]) == (413, "a request is at most 64 KiB")


async def test_a_request_that_does_not_arrive_times_out(world: World) -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    async with world.client() as client:
        with patch.object(mcp_endpoint, "BODY_SECONDS", 0.01):
            output = {**ACCEPT, "Content-Type": "application/json"}
            refused = await client.http.post("/mcp", content=silent(), headers=output)
    assert (refused.status_code, refused.json()["error"]["code"]) == (408, 408)


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 5000, b'"x"', b"\xff"])
async def test_an_invalid_message_gets_a_json_rpc_error(world: World, body: bytes) -> None:
    async with world.client(**token("tools:read")) as client:
        headers = {**ACCEPT, "Content-Type": "application/json", **client.headers}
        for version in ("2025-06-18", "2026-07-28"):
            output = {**headers, "MCP-Protocol-Version": version}
            refused = await client.http.post("/mcp", content=body, headers=output)
            assert (refused.status_code, refused.json()["jsonrpc"]) == (400, "2.0")


@pytest.mark.states("S4-207")
@pytest.mark.parametrize("number", [7, "seven", None])
async def test_a_rate_limited_client_gets_429_and_a_json_rpc_error(world: World, number: object) -> None:
    world.per_minute = 2
    async with world.client() as client:
        first = await client.post("tools/list")
        assert {name: first.headers[name] for name in RATES} == RATES
        await client.call("list_sources")
        refused = await client.post("tools/list", number=number)
        assert (await client.post("tools/list", shown=token())).status_code == 200
        world.clock.at += 42
        again = await client.post("tools/list")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "42")
    assert (refused.headers["ratelimit-remaining"], again.status_code) == ("0", 200)
    output = refused.json()
    assert (output["jsonrpc"], output["id"], output["error"]["code"]) == ("2.0", number, 429)
    assert output["error"]["message"] == (
        "the plan `public` allows 2 requests a minute, and they are spent. try again in 42 seconds"
    )
    assert output["error"]["data"]["error"]["code"] == "RATE_LIMITED"


async def test_a_token_has_the_rate_limit_of_its_plan_over_http_and_mcp(world: World) -> None:
    world.over_http = True
    async with world.client(**token(plan="small")) as client:
        assert (await client.post("tools/list")).headers["ratelimit-remaining"] == "1"
        over_http = await client.http.get("/sources", headers=client.headers)
        assert over_http.headers["ratelimit-remaining"] == "0"
        assert (await client.post("tools/list")).status_code == 429


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_rate_limited_sdk_client_gets_retry_after(world: World, mode: str) -> None:
    world.per_minute = 1
    async with world.served() as url:
        async with Client(f"{url}/mcp", mode="2026-07-28") as client:
            assert (await client.list_tools()).tools
        with pytest.RaisesGroup(
            pytest.RaisesExc(MCPError, match="try again in 42 seconds"), flatten_subgroups=True
        ):
            async with Client(f"{url}/mcp", mode=mode):
                pass


@pytest.mark.parametrize("path", ["", "/mcp"])
async def test_the_metadata_names_the_issuer_and_the_scopes(world: World, path: str) -> None:
    async with world.client() as client:
        output = await client.http.get(f"/.well-known/oauth-protected-resource{path}")
        world.settings = {"public_url": "https://search.example.com/"}
    async with world.client() as client:
        named = await client.http.get(f"/.well-known/oauth-protected-resource{path}")
    assert output.json() == {
        "resource": "http://127.0.0.1/mcp",
        "authorization_servers": ["https://issuer.example"],
        "scopes_supported": ["knowledge:read", "tools:read", "documents:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Toolscript",
    }
    assert output.headers["cache-control"] == "no-store"
    assert named.json()["resource"] == "https://search.example.com/mcp"
    assert named.headers["cache-control"] == "max-age=3600"


async def test_an_issuer_that_is_no_url_is_left_out_and_without_keys_there_is_no_metadata(
    world: World,
) -> None:
    world.settings = {"jwt_issuer": "the house"}
    async with world.client() as client:
        output = await client.http.get("/.well-known/oauth-protected-resource/mcp")
    world.settings = {"jwt_keys": "", "jwt_issuer": ""}
    world.public = frozenset({Scope.TOOLS_READ})
    async with world.client() as client:
        nothing = await client.http.get("/.well-known/oauth-protected-resource/mcp")
        refused = await client.post("tools/list", shown={"Authorization": "Bearer x"})
    assert "authorization_servers" not in output.json()
    assert nothing.status_code == 404
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
