"""An installation that all tests of a file write to, and its HTTP API in this process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.gateway.machines import mcp_server
from tests.unit.conftest import fill
from tests.unit.core.mcp_client.builders import running
from tests.unit.tools.sources_http.builders import Service, serving, write_config
from toolscript.core.settings.service import Settings


@pytest.fixture(scope="module")
def installed(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        asyncio.run(fill(fresh.settings))
        yield fresh


@pytest.fixture(scope="module")
def servers_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A config file with a server over stdio, one over HTTP, one that dies and one that is invalid."""
    folder: Path = tmp_path_factory.mktemp("servers")
    with running("tests.support.mcp_servers.modern", "http") as (_, port):
        servers = {
            "plain": mcp_server("plain"),
            "modern": {"url": f"http://127.0.0.1:{port}/mcp"},
            "dying": mcp_server("faulty", "dies_at_start"),
            "unset": {"command": "node", "env": {"KEY": "${NOBODY_SET_THIS}"}},
        }
        yield write_config(folder / "servers.json", servers)


@pytest.fixture(scope="module")
async def service(installed: Installation, servers_file: str) -> AsyncIterator[Service]:
    """A service that holds changes and may sync the servers of the config file."""
    more = {"TOOLSCRIPT_SYNC_CONFIG": servers_file, "TOOLSCRIPT_HOLD_CHANGES": "true"}
    async with serving(installed, **more) as opened:
        yield opened
