"""Apps whose libraries are imported on the first request."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

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


async def test_a_request_before_the_load_triggers_it_and_is_answered() -> None:
    later = LazyMount(["json"], echoing, never)
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async with later.open():
        await asyncio.gather(*(later.app("echo")(SCOPE, nothing, send) for _ in range(3)))
        await later.app("echo")(SCOPE, nothing, send)
    assert messages == [{"type": "http"}] * 4


async def test_without_a_request_nothing_is_loaded_before_the_close() -> None:
    async with LazyMount(["no_such_module"], echoing, never).open():
        pass


async def test_a_failed_load_is_reported_to_waiting_and_later_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    later = LazyMount(["no_such_module"], echoing, never)
    async with later.open():
        app = later.app("echo")
        waiting = await asyncio.gather(*(app(SCOPE, nothing, unheard) for _ in range(2)), return_exceptions=True)
        with pytest.raises(Unavailable, match="no_such_module"):
            await app(SCOPE, nothing, unheard)
    assert [type(error) for error in waiting] == [Unavailable] * 2
    assert "MCP cannot be loaded" in caplog.text


async def test_apps_that_cannot_be_opened_leave_no_request_waiting() -> None:
    def broken() -> AbstractAsyncContextManager[Mapping[str, ASGIApp]]:
        raise AttributeError("an older library lies below")

    later = LazyMount(["json"], broken, never)
    async with later.open():
        with pytest.raises(Unavailable, match="an older library"):
            await asyncio.wait_for(later.app("echo")(SCOPE, nothing, unheard), 20)
