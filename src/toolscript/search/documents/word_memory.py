"""How common words are among a tenant's passages, remembered for a while."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from toolscript.model.document_points import WordStatistics
from toolscript.model.tenancy import Tenant
from toolscript.ports import TenantDocuments

FRESH_SECONDS = 60.0
# Eight bytes each.
MOST_TERMS = 20_000_000


@dataclass(frozen=True)
class _Known:
    statistics: WordStatistics
    until: float


class WordMemory:
    """Of the tenants that asked last. What is remembered of one is that one's alone."""

    def __init__(self, most_terms: int = MOST_TERMS) -> None:
        self._known: OrderedDict[Tenant, _Known] = OrderedDict()
        self._asked: dict[Tenant, asyncio.Task[WordStatistics]] = {}
        self._most_terms = most_terms
        self._terms = 0

    async def of(self, documents: TenantDocuments) -> WordStatistics:
        known = self._known.get(documents.tenant)
        if known is not None and known.until > time.monotonic():
            self._known.move_to_end(documents.tenant)
            return known.statistics
        return await asyncio.shield(self._asking(documents))

    def _asking(self, documents: TenantDocuments) -> asyncio.Task[WordStatistics]:
        """Those who ask at the same moment wait for the same answer; one who gives up leaves it to the others."""
        tenant = documents.tenant
        if tenant not in self._asked:
            self._asked[tenant] = asyncio.create_task(self._ask(documents))
            self._asked[tenant].add_done_callback(lambda task: self._answered(tenant, task))
        return self._asked[tenant]

    async def _ask(self, documents: TenantDocuments) -> WordStatistics:
        statistics = await documents.statistics()
        # Whoever has nothing yet is about to put something.
        if statistics.sample:
            self._remember(documents.tenant, statistics)
        return statistics

    def _answered(self, tenant: Tenant, task: asyncio.Task[WordStatistics]) -> None:
        del self._asked[tenant]
        if not task.cancelled():
            task.exception()

    def _forget(self, tenant: Tenant) -> None:
        known = self._known.pop(tenant, None)
        if known is not None:
            self._terms -= len(known.statistics.terms)

    def _remember(self, tenant: Tenant, statistics: WordStatistics) -> None:
        self._forget(tenant)
        self._known[tenant] = _Known(statistics, time.monotonic() + FRESH_SECONDS)
        self._terms += len(statistics.terms)
        while self._terms > self._most_terms and len(self._known) > 1:
            self._forget(next(iter(self._known)))
