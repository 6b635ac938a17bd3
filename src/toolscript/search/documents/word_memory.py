"""How common words are among a tenant's passages, remembered for a while."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from toolscript.model.document_points import WordStatistics
from toolscript.model.filters import NO_FILTERS
from toolscript.model.tenancy import Tenant
from toolscript.ports import TenantDocuments

FRESH_SECONDS = 60.0
# Eight bytes each; of a tenant at least so many are reckoned, for what it takes to remember it at all.
MOST_TERMS, LEAST_TERMS = 20_000_000, 100


@dataclass(frozen=True)
class Known:
    """What is remembered of a tenant: how common its words are, and how many documents it has."""

    statistics: WordStatistics
    documents: int
    until: float


class WordMemory:
    """Of the tenants that asked last. What is remembered of one is that one's alone."""

    def __init__(self, most_terms: int = MOST_TERMS) -> None:
        self._known: OrderedDict[Tenant, Known] = OrderedDict()
        self._asked: dict[Tenant, asyncio.Task[Known]] = {}
        self._most_terms = most_terms
        self._terms = 0

    async def of(self, documents: TenantDocuments) -> Known:
        known = self._known.get(documents.tenant)
        if known is not None and known.until > time.monotonic():
            self._known.move_to_end(documents.tenant)
            return known
        return await asyncio.shield(self._asking(documents))

    def _asking(self, documents: TenantDocuments) -> asyncio.Task[Known]:
        """Those who ask at the same moment wait for the same answer; one who gives up leaves it to the others."""
        tenant = documents.tenant
        if tenant not in self._asked:
            self._asked[tenant] = asyncio.create_task(self._ask(documents))
            self._asked[tenant].add_done_callback(lambda task: self._answered(tenant, task))
        return self._asked[tenant]

    async def _ask(self, documents: TenantDocuments) -> Known:
        statistics, total = await asyncio.gather(documents.statistics(), documents.count(NO_FILTERS))
        known = Known(statistics, total.value, time.monotonic() + FRESH_SECONDS)
        # Whoever has nothing yet is about to put something.
        if statistics.sample:
            self._remember(documents.tenant, known)
        return known

    def _answered(self, tenant: Tenant, task: asyncio.Task[Known]) -> None:
        del self._asked[tenant]
        if not task.cancelled():
            task.exception()

    def _forget(self, tenant: Tenant) -> None:
        known = self._known.pop(tenant, None)
        if known is not None:
            self._terms -= _size(known.statistics)

    def _remember(self, tenant: Tenant, known: Known) -> None:
        self._forget(tenant)
        self._known[tenant] = known
        self._terms += _size(known.statistics)
        while self._terms > self._most_terms and len(self._known) > 1:
            self._forget(next(iter(self._known)))


def _size(statistics: WordStatistics) -> int:
    return max(LEAST_TERMS, len(statistics.terms))
