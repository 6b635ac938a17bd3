"""The conformance server itself, and behind a gateway."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import repeat
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory

import anyio
import httpx2
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Route

from tests.e2e.commands import command, environment
from tests.support.mcp_servers_conformance.everything import everything_server
from tests.unit.gateway.mcp.serving import serve
from toolscript.core.mcp.endpoint import LOOPBACK_ONLY


@asynccontextmanager
async def serve_everything() -> AsyncIterator[str]:
    manager = StreamableHTTPSessionManager(everything_server(), security_settings=LOOPBACK_ONLY)
    async with serve([Route("/mcp", StreamableHTTPASGIApp(manager))], manager.run()) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def serve_everything_through_the_gateway(endpoint: str = "everything") -> AsyncIterator[str]:
    """Run a gateway with the conformance server in its config file. `endpoint`: the server, or `all`."""
    async with serve_everything() as upstream:
        with TemporaryDirectory() as home, gateway_with(Path(home), {"everything": {"url": upstream}}) as address:
            await until_listed(address)
            yield f"{address}/mcp/{endpoint}"


@asynccontextmanager
async def serve_everything_at_the_joint_endpoint() -> AsyncIterator[str]:
    """Run a gateway that has the conformance server alone, and return the address of `/mcp`."""
    async with serve_everything() as upstream:
        with TemporaryDirectory() as home, gateway_with(Path(home), {"everything": {"url": upstream}}) as address:
            await until_listed(address)
            yield f"{address}/mcp"


async def until_listed(address: str, seconds: float = 60.0) -> None:
    """Wait until the gateway has prompts."""
    with anyio.fail_after(seconds):
        async with httpx2.AsyncClient(trust_env=False, timeout=seconds) as client:
            for pause in repeat(0.05):
                listed = (await client.get(f"{address}/tools")).json()["tools"]
                if any(item["kind"] == "prompt" for item in listed):
                    return
                await anyio.sleep(pause)


@contextmanager
def gateway_with(home: Path, servers: dict[str, object]) -> Iterator[str]:
    (home / ".toolscript.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    # A folder without a model: none is needed here.
    own = {"HOME": str(home), "TOOLSCRIPT_SEARCH_MODEL": str(home)}
    process = Popen(
        command("gateway", "start", "--port", "0", "--json"),
        env=environment(own),
        cwd=home,
        stdout=PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()
