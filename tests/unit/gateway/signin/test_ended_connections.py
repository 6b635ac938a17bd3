"""A sign-in that ends while a call runs: only the refused call was not made."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.unit.core.mcp_client.builders import until_ready
from tests.unit.gateway.mcp.serving import serve
from tests.unit.gateway.signin.people import NAME, SignedIn
from toolscript.core.errors import OutcomeUnknown, ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.oauth.grant import Grant, Registration
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]

RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "fast")]},
    "ping": {},
}


class Revoking:
    """A server that carries the tool `slow` out for long, and refuses every token once it `has_ended`."""

    def __init__(self) -> None:
        self.has_ended = False
        self.has_begun = asyncio.Event()

    async def respond(self, request: Request) -> Response:
        if self.has_ended:
            challenge = f'Bearer resource_metadata="{request.base_url}metadata"'
            return Response("", 401, {"WWW-Authenticate": challenge})
        if request.method != "POST":
            return Response("", 405)
        message = await request.json()
        if "id" not in message:
            return Response("", 202)
        if message["method"] == "tools/call":
            self.has_begun.set()
            await asyncio.sleep(30)
        about = {"jsonrpc": "2.0", "id": message["id"]}
        known = RESULTS.get(message["method"])
        refusal = {"error": {"code": -32601, "message": "no"}}
        return JSONResponse({**about, **({"result": known} if known is not None else refusal)})


@pytest.fixture
async def revoking() -> AsyncIterator[tuple[Revoking, str]]:
    server = Revoking()
    async with serve([Route("/mcp", server.respond, methods=["GET", "POST", "DELETE"])]) as address:
        yield server, f"{address}/mcp"


async def test_a_running_call_is_not_said_to_be_not_made_when_another_one_is_refused(
    revoking: tuple[Revoking, str], servers: McpServers, tmp_path: Path
) -> None:
    server, url = revoking
    done = SignedIn(ServerSpec(NAME, Transport.HTTP, url=url), tmp_path)
    await done.credentials.save(Grant(url, url, url, url, "", Registration("c"), "a-token", sign_in="one"))
    servers.use([done.spec])
    await until_ready(servers, NAME)
    running = asyncio.create_task(servers.call(NAME, "slow", {}))
    await asyncio.wait_for(server.has_begun.wait(), 10)
    server.has_ended = True
    with pytest.raises(ServerUnavailable, match="the call was not made"):
        await servers.call(NAME, "fast", {})
    with pytest.raises(OutcomeUnknown) as unknown:
        await running
    assert "was not made" not in unknown.value.message
