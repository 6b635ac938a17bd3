"""An app of a gateway with in-memory servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from starlette.applications import Starlette

from tests.doubles import MemoryActivity
from tests.unit.gateway.runtime.builders import FILES, MAIL, World, open_world, tool
from tests.unit.gateway.runtime.serving import open_app
from toolscript.core.errors import ServerRejected, ServerUnavailable
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.activity import Action, Ending, Entry, Outcome


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
        yield open_app(world.gateway, limit=2, activity=some_activity())


def some_activity() -> MemoryActivity:
    """A log with one entry of each kind."""
    log = MemoryActivity()
    call = Entry(Action.CALL, 1_700_000_000.125, "cursor", "files", "read_file", 20)
    log.add(Entry(Action.SEARCH, 1_700_000_000.0, "cli", argument_bytes=11), Ending(Outcome.OK, 2.5))
    log.add(replace(call, arguments='{"path": "a"}'), Ending(Outcome.OK, 41.5, measure=lambda: 124))
    log.add(call, Ending(Outcome.UNKNOWN, 3.0, "CANCELLED"))
    log.begin(replace(call, client="claude"))
    return log


@pytest.fixture(scope="module")
async def starting() -> AsyncIterator[Starlette]:
    async with open_world(begin=lambda world: world.use("mute")) as world:
        yield open_app(world.gateway, limit=2)
