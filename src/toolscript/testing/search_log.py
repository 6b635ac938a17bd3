"""In-memory log of tool searches."""

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from toolscript.core.items import tool_id
from toolscript.core.namespaces import Namespaces, ordered, seen_in
from toolscript.testing.catalog import MemoryCatalog
from toolscript.tools.model.search_log import (
    MAX_COUNTED,
    Gap,
    GapReport,
    LoggedSearch,
    SearchFilter,
    SearchPosition,
)


class MemorySearchLog:
    """A view of some namespaces is a shallow copy: it shares the entries."""

    def __init__(self, catalog: MemoryCatalog, max_counted: int = MAX_COUNTED) -> None:
        self._catalog = catalog
        self._max_counted = max_counted
        self._entries: dict[SearchPosition, LoggedSearch] = {}
        self.namespaces: Namespaces = None

    def within(self, namespaces: Namespaces) -> "MemorySearchLog":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def write(self, searches: Sequence[LoggedSearch], /) -> None:
        for search in searches:
            self._entries.setdefault(search.position, replace(search, namespaces=ordered(search.namespaces)))

    async def keep(self, today: date, days: int, *, ahead: bool) -> None:  # noqa: ARG002 - nothing to prepare
        oldest = today - timedelta(days=days)
        for position in [position for position in self._entries if position.at.astimezone(UTC).date() < oldest]:
            del self._entries[position]

    async def page(self, where: SearchFilter, before: SearchPosition | None, limit: int) -> Sequence[LoggedSearch]:
        return [
            self._shown(search)
            for search in self._latest(where.since)
            if (before is None or search.position < before)
            and (where.good_match is None or search.good_match is where.good_match)
        ][:limit]

    async def gaps(self, since: datetime, limit: int) -> GapReport:
        missed = [search for search in self._latest(since) if search.good_match is False and search.text]
        counted = missed[: self._max_counted]
        by_key: dict[int | None, list[LoggedSearch]] = defaultdict(list)
        for search in counted:
            by_key[search.text_key].append(search)
        gaps = [Gap(len(searches), self._shown(searches[0])) for searches in by_key.values()]
        gaps.sort(key=lambda gap: (gap.count, gap.last.at), reverse=True)
        return GapReport(tuple(gaps[:limit]), len(counted), is_complete=len(counted) < self._max_counted)

    def _latest(self, since: datetime) -> Sequence[LoggedSearch]:
        return [
            search
            for position, search in sorted(self._entries.items(), reverse=True)
            if position.at >= since and all(seen_in(self.namespaces, name) for name in search.namespaces)
        ]

    def _shown(self, search: LoggedSearch) -> LoggedSearch:
        stored = None if search.tool_id is None else self._catalog.stored(search.tool_id)
        if stored is None or stored.namespace not in search.namespaces:
            return search
        return replace(search, tool_name=tool_id(stored.item.server, stored.item.name))
