"""In-memory activity log."""

from collections.abc import Sequence
from dataclasses import replace

from toolscript.core.items import tool_id
from toolscript.gateway.activity import ActivityFilter, Ending, Entry, Outcome, Record, Ticket


class MemoryActivity:
    def __init__(self, max_rows: int = 100_000) -> None:
        self.problem = ""
        self._max_rows = max_rows
        self._records: dict[int, Record] = {}
        self._last = 0

    def begin(self, entry: Entry) -> Ticket:
        return Ticket(entry, self._append(Record(0, entry, Outcome.RUNNING)))

    def finish(self, ticket: Ticket, ending: Ending) -> None:
        self._records[ticket.id] = _completed(Record(ticket.id, ticket.entry, ending.outcome), ending)

    def add(self, entry: Entry, ending: Ending) -> None:
        self._append(_completed(Record(0, entry, ending.outcome), ending))

    async def written(self) -> None: ...

    async def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        newest = sorted(self._records.values(), key=lambda record: -record.id)
        below = [record for record in newest if before is None or record.id < before]
        return [record for record in below if _matches(record, where)][:limit]

    def _append(self, record: Record) -> int:
        self._last += 1
        self._records[self._last] = replace(record, id=self._last)
        over = [row for row, known in self._records.items() if known.outcome is not Outcome.RUNNING]
        for row in over[: max(0, len(self._records) - self._max_rows)]:
            del self._records[row]
        return self._last


def _completed(record: Record, ending: Ending) -> Record:
    return replace(record, took_ms=ending.took_ms, result_bytes=ending.measure(), error=ending.error)


def _matches(record: Record, where: ActivityFilter) -> bool:
    entry = record.entry
    return (
        where.server in ("", entry.server)
        and where.tool in ("", entry.tool, tool_id(entry.server, entry.tool))
        and where.client in ("", entry.client)
        and where.outcome in ("", record.outcome)
    )
