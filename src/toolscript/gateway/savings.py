"""What was done in the last days, and the tokens that MCP clients saved: a line of `toolscript gateway status`."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.items import Item
from toolscript.core.tokens import definitions_of, estimated_tokens, listed_bytes
from toolscript.gateway.activity import Usage
from toolscript.gateway.history import history
from toolscript.gateway.mcp.definitions import definitions_of_tools
from toolscript.gateway.model import Gateway, Need
from toolscript.gateway.session import ask

DAYS = 30


@dataclass(frozen=True)
class Savings:
    """`saved_tokens` are estimated: in each session a client listed our tools in place of all, and searched."""

    usage: Usage
    saved_tokens: int

    def __str__(self) -> str:
        done = f"in {DAYS} days: {self.usage.searches:,} searches, {self.usage.calls:,} calls"
        if not self.usage.sessions:
            return done
        return (
            f"{done}; about {self.saved_tokens:,} tokens saved in {self.usage.sessions:,} sessions of MCP clients"
        )


def savings(*, flags: Mapping[str, object]) -> Savings:
    usage = history(flags).usage(time.time() - DAYS * 24 * 3600)
    items = ask(_items, flags=flags, need=Need(model=False)) if usage.sessions else ()
    return savings_of(usage, listed_bytes(definitions_of(items)), listed_bytes(definitions_of_tools(split=False)))


def savings_of(usage: Usage, all_bytes: int, own_bytes: int) -> Savings:
    return Savings(usage, estimated_tokens(usage.sessions * (all_bytes - own_bytes) - usage.searched_bytes))


async def _items(gateway: Gateway) -> Sequence[Item]:
    return await gateway.items()
