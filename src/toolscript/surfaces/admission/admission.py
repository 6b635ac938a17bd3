"""The gates of one process, and what is told of refusals."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from toolscript.surfaces.admission.gate import Gate, Limits
from toolscript.surfaces.admission.table import Kind

logger = logging.getLogger(__name__)

# A line for each refusal would cost more than the refusal, at a time when there is nothing to spare.
LOG_EVERY_SECONDS = 1.0
ADAPT_EVERY_SECONDS = 0.05

# Kind, path, and the seconds from the parsed request to the answer.
OnRefused = Callable[[Kind, str, float], None]


class Admission:
    def __init__(self, reads: Limits, writes: Limits, on_refused: OnRefused | None = None) -> None:
        self.gates = {Kind.READ: Gate(reads), Kind.WRITE: Gate(writes)}
        self._on_refused = on_refused
        self._unlogged = 0
        self._logged_at = float("-inf")

    @asynccontextmanager
    async def adapting(self) -> "AsyncIterator[Admission]":
        """While it is open, the limits follow how late the event loop is."""
        task = asyncio.create_task(self._adapt())
        try:
            yield self
        finally:
            task.cancel()

    async def _adapt(self) -> None:
        while True:
            due = time.monotonic() + ADAPT_EVERY_SECONDS
            await asyncio.sleep(ADAPT_EVERY_SECONDS)
            late = time.monotonic() - due
            for gate in self.gates.values():
                gate.adapt(late)

    def is_overloaded(self, seconds: float) -> bool:
        """Whether more searches came than fit, in the last so many seconds."""
        return self.gates[Kind.READ].was_full_within(seconds)

    def refused(self, kind: Kind, path: str, seconds: float) -> None:
        if self._on_refused is not None:
            self._on_refused(kind, path, seconds)
        self._unlogged += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY_SECONDS:
            gate = self.gates[kind]
            facts = {
                "kind": kind.value,
                "refused": self._unlogged,
                "running": gate.running,
                "waiting": gate.waiting,
                "limit": gate.limit,
            }
            logger.warning("overloaded: requests are refused", extra=facts)
            self._unlogged, self._logged_at = 0, now
