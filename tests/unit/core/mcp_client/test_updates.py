"""Watchers of one resource share a subscription at its server."""

import asyncio
from typing import Any

import pytest

from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.connection import Connection
from toolscript.core.mcp_client.updates import ResourceUpdates

pytestmark = pytest.mark.requirement("GW-003")


class SlowServer(Connection):
    """A connection whose server takes a while for each request."""

    def __init__(self) -> None:
        dispatcher: Any = type("Updates", (), {"updates": ResourceUpdates()})()
        self._dispatcher = dispatcher
        self.protocol = "2025-06-18"
        self.sent: list[str] = []

    async def _request(self, method: str, params: JsonObject, *_: Any) -> JsonObject:
        self.sent.append(method.partition("/")[2])
        await asyncio.sleep(0.05)
        return {}

    def watching(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.watch("u", lambda: None))


async def test_who_comes_while_the_last_one_leaves_is_subscribed() -> None:
    server = SlowServer()
    first = server.watching()
    await asyncio.sleep(0.1)
    first.cancel()
    await asyncio.sleep(0.01)
    second = server.watching()
    await asyncio.sleep(0.2)
    assert server.sent == ["subscribe", "unsubscribe", "subscribe"]
    second.cancel()
    await asyncio.wait([first, second])


async def test_several_watchers_have_one_subscription() -> None:
    server = SlowServer()
    watchers = [server.watching() for _ in range(3)]
    await asyncio.sleep(0.2)
    assert server.sent == ["subscribe"]
    for watcher in watchers:
        watcher.cancel()
    await asyncio.wait(watchers)
    assert server.sent == ["subscribe", "unsubscribe"]
    assert server._dispatcher.updates._turns == {}
