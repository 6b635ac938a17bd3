"""Which tenants there are, in memory."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from toolscript.model.tenancy import KnownTenant, Tenant


class MemoryTenants:
    """`forget_queries` is told of every tenant that is forgotten, for a query log that keeps some."""

    def __init__(self, forget_queries: Callable[[Tenant], None] = lambda _: None) -> None:
        self._known: dict[str, KnownTenant] = {}
        self._forget_queries = forget_queries

    async def seen(self, tenant: Tenant) -> None:
        self._known.setdefault(tenant.name, KnownTenant(tenant, datetime.now(UTC).isoformat()))

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        return [self._known[name] for name in sorted(self._known) if name > after][:limit]

    async def forget(self, tenant: Tenant) -> None:
        self._forget_queries(tenant)
        self._known.pop(tenant.name, None)
