"""The subscription to changes of a modern server's lists; older servers report them unasked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, ServerCapabilities

from toolscript.core.mcp_client.protocol import is_modern
from toolscript.core.mcp_client.supervision import Signals

# The first listing waits this long, at most, for the server to acknowledge the subscription.
_ACKNOWLEDGE_SECONDS = 1.0
_RESUBSCRIBE_SECONDS = 1.0
_MAX_RESUBSCRIBE_SECONDS = 60.0


@asynccontextmanager
async def subscription(session: ClientSession, signals: Signals) -> AsyncIterator[None]:
    """Keep a subscription to change notifications, if the protocol is modern, while the context is open.

    Entered before the first listing, so that it misses no later change.
    """
    if not is_modern(session.protocol_version or ""):
        yield
        return
    async with anyio.create_task_group() as tasks:
        acknowledged = anyio.Event()
        tasks.start_soon(_keep_listening, session, signals, acknowledged)
        with anyio.move_on_after(_ACKNOWLEDGE_SECONDS):
            await acknowledged.wait()
        # From here on the listing may begin: a subscription that starts later requests another one.
        acknowledged.set()
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


async def _keep_listening(session: ClientSession, signals: Signals, acknowledged: anyio.Event) -> None:
    """Subscribe again, with backoff, when a subscription ends; return if the server rejects it."""
    pause = _RESUBSCRIBE_SECONDS
    while True:
        started = anyio.current_time()
        try:
            await _listen(session, signals, acknowledged)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                acknowledged.set()
                return
        except SubscriptionLost:
            pass
        signals.request_ping()
        signals.change()
        if anyio.current_time() - started > pause:
            pause = _RESUBSCRIBE_SECONDS
        await anyio.sleep(pause)
        pause = min(2 * pause, _MAX_RESUBSCRIBE_SECONDS)


async def _listen(session: ClientSession, signals: Signals, acknowledged: anyio.Event) -> None:
    capabilities = session.server_capabilities or ServerCapabilities()
    async with listen(
        session,
        tools_list_changed=capabilities.tools is not None,
        prompts_list_changed=capabilities.prompts is not None,
        resources_list_changed=capabilities.resources is not None,
    ) as events:
        if acknowledged.is_set():
            # The server does not replay notifications: only a new listing finds what changed before now.
            signals.change()
        acknowledged.set()
        async for _ in events:
            signals.change()
