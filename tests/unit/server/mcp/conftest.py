"""A service with all capabilities behind `/mcp`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.server.mcp.builders import World, a_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = await a_world(tmp_path)
    yield made
    await made.keys.close()
