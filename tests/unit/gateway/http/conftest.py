"""An app of a gateway with in-memory servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette

from tests.unit.gateway.runtime.builders import FILES, MAIL, World, open_world, tool
from tests.unit.gateway.runtime.serving import open_app
from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult


def answered(_server: str, name: str, arguments: JsonObject) -> CallResult:
    if name == "reject":
        raise ServerRejected("no", details={"code": -1})
    if name == "vanish":
        raise ServerUnavailable("gone")
    return CallResult(({"type": "text", "text": name},), dict(arguments), is_error=name == "fails")


@asynccontextmanager
async def furnished_world() -> AsyncIterator[World]:
    async with open_world(answer=answered) as world:
        world.use("files", "mail", "demo")
        world.servers.put("files", *FILES, tool("files", "sum_up", "Sum up", type="prompt"))
        world.servers.put("mail", *MAIL)
        world.servers.put("demo", *(tool("demo", name) for name in ("reject", "vanish", "fails")))
        await world.settled()
        yield world


@pytest.fixture(scope="module")
async def app() -> AsyncIterator[Starlette]:
    async with furnished_world() as world:
        yield open_app(world.gateway, limit=2)


@pytest.fixture(scope="module")
async def starting() -> AsyncIterator[Starlette]:
    async with open_world(begin=lambda world: world.use("mute")) as world:
        yield open_app(world.gateway, limit=2)
