"""What the gateway saved: tokens of listing all tools in each session, against its own tools and their answers."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolscript.core.tokens import BYTES_PER_TOKEN, definitions_of, estimated_tokens, listed_bytes, listed_tokens
from toolscript.gateway.activity import SessionUse
from toolscript.gateway.history import history
from toolscript.gateway.model import Need
from toolscript.gateway.session import ask

if TYPE_CHECKING:
    from collections.abc import Sequence as Items

    from toolscript.core.items import Item
    from toolscript.gateway.model import Gateway

DAY_SECONDS = 24 * 3600.0
TOTAL = "all"
ESTIMATED = f"estimated at {BYTES_PER_TOKEN} bytes per token"


@dataclass(frozen=True)
class ClientSavings:
    """Tokens over all sessions of a client: `listed` of all tools, `own` of the gateway's, `used` in requests."""

    client: str
    sessions: int = 0
    requests: int = 0
    listed: int = 0
    own: int = 0
    used: int = 0

    @property
    def saved(self) -> int:
        return self.listed - self.own - self.used

    @property
    def share(self) -> float | None:
        """Return the share of the list that was saved; None where nothing was listed."""
        return round(self.saved / self.listed, 4) if self.listed else None


@dataclass(frozen=True)
class SavingsReport:
    """`counted` says how tokens are counted. `unmeasured` sessions are left out: their tools were not measured."""

    days: int
    clients: tuple[ClientSavings, ...]
    total: ClientSavings
    counted: str
    unmeasured: int = 0


def savings(*, flags: Mapping[str, object], days: int, exact: bool) -> SavingsReport:
    sessions = [use for use, _ in history(flags).sessions(time.time() - days * DAY_SECONDS) if use.requests]
    bytes_per_token, counted = _exact_ratio(flags) if exact else (BYTES_PER_TOKEN, ESTIMATED)
    return report_of(sessions, days, bytes_per_token, counted)


def report_of(sessions: Sequence[SessionUse], days: int, bytes_per_token: float, counted: str) -> SavingsReport:
    measured = [use for use in sessions if use.listed_bytes]
    by_client: dict[str, ClientSavings] = {}
    for use in measured:
        known = by_client.get(use.client, ClientSavings(use.client))
        by_client[use.client] = _added(known, use, bytes_per_token)
    total = ClientSavings(TOTAL)
    for use in measured:
        total = _added(total, use, bytes_per_token)
    clients = sorted(by_client.values(), key=lambda row: (-row.saved, row.client))
    return SavingsReport(days, tuple(clients), total, counted, len(sessions) - len(measured))


def _added(known: ClientSavings, use: SessionUse, bytes_per_token: float) -> ClientSavings:
    return replace(
        known,
        sessions=known.sessions + 1,
        requests=known.requests + use.requests,
        listed=known.listed + estimated_tokens(use.listed_bytes, bytes_per_token),
        own=known.own + estimated_tokens(use.own_bytes, bytes_per_token),
        used=known.used + estimated_tokens(use.used_bytes, bytes_per_token),
    )


def _exact_ratio(flags: Mapping[str, object]) -> tuple[float, str]:
    """Return the bytes per token of the tools that are there now, counted with the tokenizer."""
    from toolscript.core.tokens import o200k_tokens

    count = o200k_tokens()

    async def items(gateway: "Gateway") -> "Items[Item]":
        return await gateway.items()

    definitions = definitions_of(ask(items, flags=flags, need=Need(model=False)))
    if not definitions:
        return BYTES_PER_TOKEN, f"{ESTIMATED}: no tool is listed"
    ratio = listed_bytes(definitions) / listed_tokens(definitions, count)
    return ratio, f"at {ratio:.2f} bytes per token, as o200k counts the {len(definitions)} tools listed now"
