"""Renews a lease from a thread and over a connection of its own.

A short lease is worth having only if a worker that lives keeps it: neither an event loop that is busy nor a pool
that is used up may cost it its batch.
"""

import logging
import threading
import time
from contextlib import suppress

import psycopg

RENEWALS_A_LEASE = 4
# A worker that hangs for good must not hold its batch for good.
LONGEST_SECONDS = 3600.0

# Locked in order of id, as everybody does. The time is that of the renewal, not that of waiting for the locks.
_RENEW = """
WITH held AS (
    SELECT item_id FROM mcp.dirty_items
    WHERE generation = %(generation)s AND held_by = %(token)s ORDER BY item_id FOR UPDATE
)
UPDATE mcp.dirty_items dirty SET free_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM held WHERE dirty.generation = %(generation)s AND dirty.item_id = held.item_id
"""

logger = logging.getLogger(__name__)


class LeaseKeeper:
    def __init__(self, url: str, generation: int, token: str, lease_seconds: float) -> None:
        self._url = url
        self._values = {"generation": generation, "token": token, "lease": lease_seconds}
        self._lease_seconds = lease_seconds
        self._ended = threading.Event()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Waits for a renewal that is under way, but not for a server that does not answer."""
        self._ended.set()
        self._thread.join(self._lease_seconds)

    def _run(self) -> None:
        ends_at = time.monotonic() + LONGEST_SECONDS
        try:
            while not self._ended.wait(self._lease_seconds / RENEWALS_A_LEASE) and time.monotonic() < ends_at:
                self._renew()
        finally:
            self._disconnect()

    def _renew(self) -> None:
        """One that fails is tried again; whether the batch is still held is found out before it is written."""
        try:
            if self._connection is None:
                # Prepared statements would outlive the transaction, which a pooler does not allow.
                self._connection = psycopg.connect(
                    self._url, autocommit=True, connect_timeout=2, prepare_threshold=None
                )
            self._connection.execute(_RENEW, self._values)
        except psycopg.Error as error:
            logger.warning("lease not renewed", extra={"part": "worker", "reason": str(error).partition("\n")[0]})
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
