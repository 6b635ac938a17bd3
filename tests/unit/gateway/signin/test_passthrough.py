"""/mcp/{server} sends the server's token, and says who can sign in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from starlette.routing import Route

from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.serving import serve
from tests.unit.gateway.signin.people import NAME, remote, sign_ins_of, signed_in
from toolscript.core.mcp_client.model import ServerSpec
from toolscript.gateway.mcp.passthrough import passthrough_asgi

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def in_front_of(spec: ServerSpec, folder: Path) -> AsyncIterator[str]:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        app = passthrough_asgi({NAME: spec}.get, client, credentials_of=sign_ins_of(folder).of)
        async with serve([Route("/mcp/{server}", app)]) as address:
            yield f"{address}/mcp/{NAME}"


async def test_the_token_is_sent_and_renewed(port: str, tmp_path: Path) -> None:
    done = await signed_in(remote(port), tmp_path)
    async with in_front_of(done.spec, tmp_path) as url:
        async with Client(url) as client:
            assert text_of(await client.call_tool("secret_of_life", {})) == "42"
        await done.spoil()
        async with Client(url) as client:
            assert text_of(await client.call_tool("secret_of_life", {})) == "42"


async def test_without_a_sign_in_the_answer_says_who_can(port: str, tmp_path: Path) -> None:
    async with in_front_of(remote(port), tmp_path) as url, httpx2.AsyncClient(trust_env=False) as client:
        answer = await client.post(url, json=PING)
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert error["message"] == "remote refused our credentials"
    assert "only a person can sign in: `toolscript login remote`" in error["details"]["hint"]
    assert "www-authenticate" not in answer.headers
