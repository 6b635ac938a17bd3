"""Rules of people about tool search: written through here, and copied into memory for searches.

A search applies the copy that there is. Now and then one starts a check in the background, which reads the rules
again if the catalog has a newer revision; only the first search of a process waits for the rules.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.errors import ToolscriptError
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
        self._is_failing = False
        self._check_started = float("-inf")
        self._checking: asyncio.Task[None] | None = None

    async def get(self, attempt: Attempt) -> Curation:
        """Return the rules. Where the catalog did not answer the first search, later ones do not wait for it."""
        if self._curation is None and not self._is_failing:
            return await attempt.or_else(Part.CURATION, self._read_first(), NO_CURATION)
        is_checking = self._checking is not None and not self._checking.done()
        if not is_checking and self._now() - self._check_started >= CHECK_SECONDS:
            self._checking = asyncio.ensure_future(self.check())
        if self._curation is None:
            attempt.record(Part.CURATION)
        return self._curation or NO_CURATION

    async def check(self) -> None:
        """Read the rules again if they have changed. If that fails, those of before stay."""
        try:
            await self._read()
        except ToolscriptError as error:
            logger.debug("rules not checked", extra={"part": "curation", "reason": error.message})

    def forget(self) -> None:
        """Drop the copy after a write: the next search reads the rules."""
        self._curation, self._revisions, self._is_failing = None, {}, False
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    async def _read_first(self) -> Curation:
        self._is_failing = True
        curation = await self._read()
        self._is_failing = False
        return curation

    async def _read(self) -> Curation:
        self._check_started = self._now()
        # Rules written during the read are newer than these revisions: the next check detects that.
        revisions = await self._rules.revisions(self._namespaces)
        if self._curation is None or revisions != self._revisions:
            self._curation = Curation(await self._rules.all(self._namespaces) if revisions else ())
            self._revisions = revisions
        return self._curation


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
