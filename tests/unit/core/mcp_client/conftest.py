"""Servers under a supervisor with short delays."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.core.mcp_client.builders import QUICK
from toolscript.core.mcp_client.servers import McpServers


@pytest.fixture
async def servers() -> AsyncIterator[McpServers]:
    made = McpServers(QUICK)
    yield made
    await made.close()
