"""Apps whose libraries are loaded when somebody wants them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.errors import Unavailable
from toolscript.core.mcp.lazy_mount import LazyMount

SCOPE: Scope = {"type": "http"}


async def nothing() -> Message:
    return {}


@asynccontextmanager
async def echoing() -> AsyncIterator[Mapping[str, ASGIApp]]:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": scope["type"]})

    yield {"echo": echo}


async def unheard(_: Message) -> None: ...


async def never() -> None:
    await asyncio.Event().wait()


async def test_who_asks_before_it_is_loaded_has_it_loaded_and_is_answered() -> None:
    later = LazyMount(["json"], echoing, never)
    told: list[Message] = []

    async def send(message: Message) -> None:
        told.append(message)

    async with later.open():
        await asyncio.gather(*(later.app("echo")(SCOPE, nothing, send) for _ in range(3)))
        await later.app("echo")(SCOPE, nothing, send)
    assert told == [{"type": "http"}] * 4


async def test_nothing_is_loaded_where_nobody_asks_and_all_is_closed_before() -> None:
    async with LazyMount(["no_such_module"], echoing, never).open():
        pass


async def test_what_cannot_be_loaded_is_said_to_whoever_waits_and_to_whoever_comes_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    later = LazyMount(["no_such_module"], echoing, never)
    async with later.open():
        app = later.app("echo")
        waiting = await asyncio.gather(*(app(SCOPE, nothing, unheard) for _ in range(2)), return_exceptions=True)
        with pytest.raises(Unavailable, match="no_such_module"):
            await app(SCOPE, nothing, unheard)
    assert [type(one) for one in waiting] == [Unavailable] * 2
    assert "MCP cannot be loaded" in caplog.text
