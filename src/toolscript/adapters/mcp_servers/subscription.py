"""Hears that a server's lists changed: the newer generation of the protocol sends that only to who asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, ServerCapabilities

from toolscript.adapters.mcp_servers.envelope import is_modern
from toolscript.adapters.mcp_servers.signals import Signals

_ACKNOWLEDGED_WITHIN = 1.0
_ASK_AGAIN = 1.0
_ASK_AGAIN_AT_LAST = 60.0


@asynccontextmanager
async def subscribed(session: ClientSession, signals: Signals) -> AsyncIterator[None]:
    """Inside, a change is heard that happens after whatever is listed now."""
    if not is_modern(session.protocol_version or ""):
        yield
        return
    async with anyio.create_task_group() as tasks:
        heard = anyio.Event()
        tasks.start_soon(_keep_listening, session, signals, heard)
        with anyio.move_on_after(_ACKNOWLEDGED_WITHIN):
            await heard.wait()
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _keep_listening(session: ClientSession, signals: Signals, heard: anyio.Event) -> None:
    pause = _ASK_AGAIN
    while True:
        try:
            await _listen(session, signals, heard)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                heard.set()
                return
        except SubscriptionLost:
            pass
        # What changed while nobody listened is found by listing again.
        signals.doubt()
        signals.change()
        await anyio.sleep(pause)
        pause = min(2 * pause, _ASK_AGAIN_AT_LAST)


async def _listen(session: ClientSession, signals: Signals, heard: anyio.Event) -> None:
    offered = session.server_capabilities or ServerCapabilities()
    async with listen(
        session,
        tools_list_changed=offered.tools is not None,
        prompts_list_changed=offered.prompts is not None,
        resources_list_changed=offered.resources is not None,
    ) as events:
        heard.set()
        async for _ in events:
            signals.change()
