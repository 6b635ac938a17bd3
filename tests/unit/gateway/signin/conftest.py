"""One authorization server, and one server that it protects, for all tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.authorization_server_running import AuthorizationServer, authorization_server
from tests.unit.core.mcp_client.builders import QUICK, running
from tests.unit.gateway.signin.people import sign_ins_of
from toolscript.core.mcp_client.servers import McpServers

PROTECTED = "tests.support.mcp_servers.protected"


@pytest.fixture(scope="session")
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(scope="session")
def port(issuer: AuthorizationServer) -> Iterator[str]:
    """The port of the protected server."""
    with running(PROTECTED, issuer.issuer) as (_, number):
        yield number


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons of these tests browse by themselves."""
    monkeypatch.setenv("BROWSER", "true")


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[McpServers]:
    """Servers of a gateway with this folder."""
    made = McpServers(QUICK, sign_ins=sign_ins_of(tmp_path))
    yield made
    await made.close()
