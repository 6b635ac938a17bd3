"""uvloop, the other event loop of a gateway, handles processes differently."""

import pytest

from tests.unit.core.mcp_client.builders import QUICK, faulty, plain, text, until_failed, until_ready, watched
from toolscript.core.errors import ServerUnavailable
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.servers import McpServers

pytest.importorskip("uvloop")
pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def test_servers_start_answer_fail_restart_and_end() -> None:
    servers = McpServers(QUICK)
    servers.use([plain(), faulty("stubborn"), ServerSpec("no", Transport.STDIO, "no-such-command")])
    await until_ready(servers, "plain", "stubborn")
    assert text(await servers.call("plain", "echo", {"a": 1})) == '{"a": 1}'
    assert "command not found" in (await until_failed(servers, "no")).error
    with pytest.raises(ServerUnavailable):
        await servers.call("plain", "quit", {})
    await until_failed(servers, "plain", "exit code 7")
    await until_ready(servers, "plain")
    processes = await watched(servers, "stubborn")
    await servers.close()
    assert processes.still_there(0) == []
