"""What the gateway did: searches and calls as they are logged, and the port of the log.

An entry is written before its call is sent, and completed before the answer is given. So a call that was answered
is in the log, and one that was being made when its process was killed is in it as `unknown`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from toolscript.core.text import readable
from toolscript.core.tokens import estimated_tokens
from toolscript.gateway.callers import MAX_NAME


class Action(StrEnum):
    SEARCH = "search"
    CALL = "call"


class Outcome(StrEnum):
    """`unknown`: a call was sent, and whether it had an effect is not known. `refused`: it was not sent."""

    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Entry:
    """A search or call that begins. `arguments` is JSON without secrets, and None unless they are to be logged."""

    action: Action
    at: float
    client: str
    server: str = ""
    tool: str = ""
    argument_bytes: int = 0
    arguments: str | None = None

    def __post_init__(self) -> None:
        for name in ("client", "server", "tool"):
            object.__setattr__(self, name, readable(getattr(self, name))[:MAX_NAME])


@dataclass(frozen=True)
class Ending:
    """How it ended. `error` is the code of an error; `measure` returns the result's bytes, on the log's thread."""

    outcome: Outcome
    took_ms: float
    error: str = ""
    measure: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class Record:
    """A row of the log. `took_ms` and `result_bytes` are None while it runs, and where that is not known."""

    id: int
    entry: Entry
    outcome: Outcome
    took_ms: float | None = None
    result_bytes: int | None = None
    error: str = ""


@dataclass(frozen=True)
class ActivityFilter:
    """`tool` is a name, or `server__tool`. Empty: any."""

    server: str = ""
    tool: str = ""
    client: str = ""
    outcome: str = ""


@dataclass(frozen=True)
class Usage:
    """Searches and calls that were not refused, and the sessions in which MCP clients searched.

    `searched_bytes` is what those searches took.
    """

    searches: int = 0
    calls: int = 0
    sessions: int = 0
    searched_bytes: int = 0


@dataclass
class Ticket:
    """An entry that has begun; the log knows by it which row to complete."""

    entry: Entry
    id: int = 0
    file: object = None


class ActivityLog(Protocol):
    """None of its methods raises or blocks; a log that cannot be written has a `problem`, and stops nothing."""

    @property
    def problem(self) -> str:
        """Return why entries are not written now, or an empty string."""

    def begin(self, entry: Entry) -> Ticket: ...
    def finish(self, ticket: Ticket, ending: Ending) -> None: ...
    def add(self, entry: Entry, ending: Ending) -> None:
        """Log an entry that has begun and ended."""

    async def written(self) -> None:
        """Wait, but not long, until all entries so far are written: then they survive the end of this process."""

    async def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        """Return the records with an id below `before`, the newest first."""


class NoActivity:
    """The log of a gateway that keeps none."""

    problem = ""

    def begin(self, entry: Entry) -> Ticket:
        return Ticket(entry)

    def finish(self, ticket: Ticket, ending: Ending) -> None: ...
    def add(self, entry: Entry, ending: Ending) -> None: ...
    async def written(self) -> None: ...
    async def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        del where, before, limit
        return ()


def record_shown(record: Record) -> dict[str, object]:
    """Return a record as JSON; a search has no server and no tool."""
    entry = record.entry
    size = entry.argument_bytes + (record.result_bytes or 0)
    return {
        "id": record.id,
        "action": entry.action.value,
        "started_at": datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="milliseconds"),
        "took_ms": record.took_ms,
        "client": entry.client,
        "server": entry.server or None,
        "tool": entry.tool or None,
        "outcome": record.outcome.value,
        "error": record.error or None,
        "argument_bytes": entry.argument_bytes,
        "result_bytes": record.result_bytes,
        "estimated_tokens": estimated_tokens(size),
        "arguments": None if entry.arguments is None else json.loads(entry.arguments),
    }
