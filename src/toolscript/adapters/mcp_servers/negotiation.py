"""Finds the protocol that both sides speak: the newer generation is asked for, the older shakes hands."""

from dataclasses import dataclass

import anyio
from mcp import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError


@dataclass
class Habits:
    """What was learnt about a server, so that it is not asked again what it did not understand."""

    shakes_hands: bool = False
    speaks_old_sse: bool = False


async def agree(session: ClientSession, habits: Habits, patience: float) -> None:
    if not habits.shakes_hands and await _discovered(session, habits, patience):
        return
    try:
        await session.initialize()
        habits.shakes_hands = True
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        habits.shakes_hands = False
        await session.discover()


async def _discovered(session: ClientSession, habits: Habits, patience: float) -> bool:
    try:
        with anyio.fail_after(patience):
            await session.discover()
    except MCPError as error:
        # There are servers that a request before the handshake kills, and others that say so with the same code
        # and go on: the handshake finds out which.
        habits.shakes_hands = habits.shakes_hands or error.code == CONNECTION_CLOSED
        return False
    except (TimeoutError, ValidationError, RuntimeError):
        return False
    return True
