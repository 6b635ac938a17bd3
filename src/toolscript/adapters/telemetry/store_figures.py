"""What is known of the stores: connections to PostgreSQL, what waits for a worker, and how much is indexed."""

import math
from collections.abc import Mapping

from toolscript.adapters.telemetry.exposition import Exposition
from toolscript.model.dirty import Pending

IDLE, IN_USE = "idle", "in_use"


class StoreFigures:
    def __init__(self, shown: Exposition) -> None:
        self._shown = shown
        self._pool = shown.gauge(
            "postgres_pool_connections", "Connections to PostgreSQL.", "state", together="livesum"
        )
        self._pool_most = shown.gauge(
            "postgres_pool_connections_max",
            "Connections that PostgreSQL is asked for at most.",
            together="livesum",
        )
        self._waiting = shown.gauge(
            "postgres_pool_waiting", "Requests that wait for a connection to PostgreSQL.", together="livesum"
        )
        self._refused = shown.counter(
            "postgres_pool_errors", "Requests that got no connection to PostgreSQL in time."
        )
        self._catalog = shown.gauge("catalog_items", "Active items of the catalog.", together="livemostrecent")
        self._index = shown.gauge("index_items", "Items in the live index.", together="livemostrecent")
        self._backlog = shown.gauge(
            "backlog_items", "Items that the live index has yet to follow.", together="livemostrecent"
        )
        self._failing = shown.gauge(
            "backlog_failing_items", "Those of them that failed again and again.", together="livemostrecent"
        )
        self._oldest = shown.gauge(
            "backlog_oldest_seconds", "How long the oldest of them has waited.", together="livemostrecent"
        )
        self._refused_before = 0
        self._pool.begin((IDLE, IN_USE))
        for alone in (self._pool_most, self._waiting, self._refused):
            alone.begin()
        self.unknown()

    def pool(self, stats: Mapping[str, int]) -> None:
        """What psycopg's pool says of itself."""
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        self._pool(IDLE).set(idle)
        self._pool(IN_USE).set(size - idle)
        self._pool_most().set(stats.get("pool_max", 0))
        self._waiting().set(stats.get("requests_waiting", 0))
        refused = stats.get("requests_errors", 0)
        self._refused().inc(max(0, refused - self._refused_before))
        self._refused_before = refused

    def items(self, catalog: float, index: float) -> None:
        self._catalog().set(catalog)
        self._index().set(index)

    def backlog(self, pending: Pending) -> None:
        self._backlog().set(pending.total)
        self._failing().set(pending.failing)
        self._oldest().set(pending.oldest_seconds)

    def unknown(self) -> None:
        """Nothing is better than what was true once: no alert compares with what is not known."""
        for one in (self._catalog, self._index, self._backlog, self._failing, self._oldest):
            one().set(math.nan)
