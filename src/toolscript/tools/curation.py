"""Rules of people about tool search: written through here, and copied into memory for searches.

A search applies the copy that there is. Now and then one starts a read in the background, which copies the rules
again if the catalog has a newer revision; only the first searches of a process, and those after a write through
it, wait for the rules.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.namespaces import Namespaces
from toolscript.core.retrieval.curation import NO_CURATION, Curation, Rule
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.taxonomy import DecidedBy
from toolscript.tools.model.curation import StoredRule, changed_rule
from toolscript.tools.ports import CurationRules

CHECK_SECONDS = 0.25

logger = logging.getLogger(__name__)


class CurationCopy:
    """The rules of some namespaces, ready to be applied."""

    def __init__(
        self, rules: CurationRules, namespaces: Sequence[str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._rules = rules
        self._namespaces = namespaces
        self._now = now
        self._curation: Curation | None = None
        self._revisions: Mapping[str, int] = {}
        self._writes = 0
        self._is_stale = True
        self._is_failing = False
        self._read_started = float("-inf")
        self._reading: asyncio.Task[Curation] | None = None

    async def get(self, attempt: Attempt) -> Curation:
        """Return the rules. Where the catalog did not answer one search, later ones do not wait for it.

        Without an answer those of before stay.
        """
        if self._is_stale and not self._is_failing:
            curation = await attempt.or_else(Part.CURATION, self._until_read(), None)
            if curation is not None:
                return curation
            self._is_failing = True
        elif self._now() - self._read_started >= CHECK_SECONDS:
            self._read_soon()
        if self._is_stale:
            attempt.record(Part.CURATION)
        return self._curation or NO_CURATION

    def forget(self) -> None:
        """Let the next search wait for the rules, after a write."""
        self._writes += 1
        self._is_stale, self._is_failing = True, False

    async def _until_read(self) -> Curation:
        """Wait for the read that all searches share: one that is given up does not end it for the others."""
        return await asyncio.shield(self._read_soon())

    def _read_soon(self) -> asyncio.Task[Curation]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read())
            self._reading.add_done_callback(_log_failure)
        return self._reading

    async def _read(self) -> Curation:
        """Read the rules if they have changed: again, if they were written meanwhile."""
        while True:
            writes, self._read_started = self._writes, self._now()
            # Rules written during the read are newer than these revisions: the next one detects that.
            revisions = await self._rules.revisions(self._namespaces)
            curation = self._curation
            if curation is None or revisions != self._revisions:
                curation = Curation(await self._rules.all(self._namespaces) if revisions else ())
            if writes == self._writes:
                self._curation, self._revisions = curation, revisions
                self._is_stale = self._is_failing = False
                return curation


def _log_failure(read: asyncio.Task[Curation]) -> None:
    if not read.cancelled() and (error := read.exception()) is not None:
        reason = str(error) or type(error).__name__
        logger.debug("rules not read", extra={"part": "curation", "reason": reason})


@dataclass(frozen=True)
class CurationManagement:
    """Writes of rules; `on_change` makes the searches of this process see them at once."""

    rules: CurationRules
    on_change: Callable[[], None]

    def within(self, namespaces: Namespaces) -> "CurationManagement":
        return CurationManagement(self.rules.within(namespaces), self.on_change)

    async def add(self, rule: Rule, by: DecidedBy, namespace: str) -> StoredRule:
        added = await self.rules.add(rule, by, namespace)
        self.on_change()
        return added

    async def change(self, rule_id: int, changes: Mapping[str, object], by: DecidedBy) -> StoredRule:
        rule = changed_rule((await self.rules.find(rule_id)).rule, changes)
        changed = await self.rules.change(rule_id, rule, by)
        self.on_change()
        return changed

    async def remove(self, rule_id: int, by: DecidedBy) -> None:
        await self.rules.remove(rule_id, by)
        self.on_change()
