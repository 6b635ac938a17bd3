"""Removes a tenant: what it has put, what was noted of it, and at last its name."""

from dataclasses import dataclass

from toolscript.errors import Conflict
from toolscript.model.filters import NO_FILTERS
from toolscript.model.progress import OnProgress
from toolscript.ports import TenantDocuments, TenantPlaces, Tenants


@dataclass(frozen=True)
class Erased:
    """`documents` is about where there were very many."""

    documents: int
    passages: int
    was_known: bool


async def erase_tenant(
    shelf: TenantDocuments, places: TenantPlaces, tenants: Tenants, on_progress: OnProgress
) -> Erased:
    """As long as the tenant is listed it can be erased again, so its name goes last."""
    tenant = shelf.tenant
    was_known = await _is_known(tenants, tenant.name)
    documents = (await shelf.count(NO_FILTERS)).value
    passages = await places.erase(tenant, on_progress)
    await tenants.forget(tenant)
    left = await places.passages(tenant)
    if left or await _is_known(tenants, tenant.name):
        raise Conflict(
            f"tenant {tenant} is being written to: {left} passages have come since, {passages} were deleted",
            hint="take its tokens away, then run it again",
        )
    return Erased(documents, passages, was_known)


async def _is_known(tenants: Tenants, name: str) -> bool:
    """Asked of the list: nothing that a name could be lies between it and this."""
    just_before = f"{name[:-1]}{chr(ord(name[-1]) - 1)}\x7f"
    return any(one.tenant.name == name for one in await tenants.page(just_before, 1))
