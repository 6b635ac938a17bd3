"""How common words are among a tenant's passages, remembered for a while."""

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
        self._most_terms = most_terms
        self._terms = 0

    async def of(self, documents: TenantDocuments) -> WordStatistics:
        known = self._known.get(documents.tenant)
        if known is not None and known.until > time.monotonic():
            self._known.move_to_end(documents.tenant)
            return known.statistics
        statistics = await documents.statistics()
        self._remember(documents.tenant, statistics)
        return statistics

    def forget(self, tenant: Tenant) -> None:
        known = self._known.pop(tenant, None)
        if known is not None:
            self._terms -= len(known.statistics.terms)

    def _remember(self, tenant: Tenant, statistics: WordStatistics) -> None:
        self.forget(tenant)
        self._known[tenant] = _Known(statistics, time.monotonic() + FRESH_SECONDS)
        self._terms += len(statistics.terms)
        while self._terms > self._most_terms and len(self._known) > 1:
            self.forget(next(iter(self._known)))
