"""The audit: what was changed, by whom, and how much of it. A change leaves exactly one entry.

A change is what one request, command or job asked for, however many objects it touched: `count` says how many.
What touched nothing leaves no entry, but for a job, which is on record anyway.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolscript.core.errors import ToolscriptError
from toolscript.core.taxonomy import Actor, AuditEntry
from toolscript.core.values import OnProgress, Progress

logger = logging.getLogger(__name__)

# The namespace of entries that administrators alone see: none has this name.
ADMINISTRATORS_ONLY = ""


@dataclass(frozen=True)
class Change:
    """`namespace` None: the subject is shared by all namespaces, as a skill is."""

    actor: Actor
    action: str
    subject: str
    namespace: str | None = ADMINISTRATORS_ONLY
    count: int | None = None
    details: dict[str, object] = field(default_factory=dict)


class AuditLog(Protocol):
    async def write(self, change: Change, /) -> None: ...
    async def after(self, number: int, limit: int, /) -> Sequence[tuple[int, AuditEntry]]:
        """Return the entries after this number, the earliest first; fewer than `limit` only at the end."""


@dataclass
class Counted:
    """What a change has touched so far."""

    count: int = 0
    details: dict[str, object] = field(default_factory=dict)

    def following(self, on_progress: OnProgress) -> OnProgress:
        """Return a callback that counts what is done so far, and passes it on."""

        def follow(progress: Progress) -> None:
            self.count = max(self.count, progress.done)
            on_progress(progress)

        return follow


def facts_of(change: Change) -> dict[str, object]:
    """Return an entry for the log, where it could not be written."""
    facts = {name: getattr(change, name) for name in ("action", "subject", "count", "details")}
    return {**facts, "actor": str(change.actor)}


@asynccontextmanager
async def recording(audit: AuditLog, change: Change) -> AsyncIterator[Counted]:
    """Write the entry of what the block changed, also when it was stopped midway.

    The change is done by then, and not undone where the entry cannot be written: the log has it.
    """
    counted = Counted()
    try:
        yield counted
    finally:
        if counted.count:
            done = replace(change, count=counted.count, details={**change.details, **counted.details})
            try:
                await audit.write(done)
            except ToolscriptError as error:
                logger.error("no entry in the audit", extra={**facts_of(done), "reason": error.message})


class NoAudit:
    """For parts that are not set up, and tests of other things."""

    async def write(self, _change: Change, /) -> None: ...
    async def after(self, _number: int, _limit: int, /) -> Sequence[tuple[int, AuditEntry]]:
        return ()
