"""Documents that are on record and not in the index: they are lost, which nobody may take for "there are none".

The record errs on one side. A tenant is noted to hold documents after its first one was written, and to hold none
before its last one goes: a process that is killed in between leaves a loss unseen until the next write, and makes
none up.
"""

from collections.abc import Collection
from typing import Protocol

from toolscript.core.errors import IndexLost
from toolscript.core.retrieval.results import DocumentKey
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import TenantDocuments, Tenants

RESTORE_HINT = (
    "`toolscript restore FOLDER --documents` brings them back from a backup; without one, "
    "`toolscript reindex documents --begin-empty` begins with none"
)
RESTORE_TENANT_HINT = (
    "`toolscript restore FOLDER --tenant NAME` brings them back from a backup; without one, "
    "`toolscript tenants erase NAME` lets the tenant begin with none"
)


def index_lost() -> IndexLost:
    return IndexLost("documents are on record, and their index is lost", hint=RESTORE_HINT)


class HasPassages(Protocol):
    async def passages(self) -> int: ...


async def require_any(index: HasPassages, tenants: Tenants) -> None:
    """Raise IndexLost if the index is empty although tenants hold documents."""
    if not await index.passages() and await tenants.holders():
        raise index_lost()


async def require_kept(documents: TenantDocuments, tenants: Tenants) -> None:
    """Raise IndexLost if the tenant holds documents, and the index has none of it."""
    if await _is_empty(documents) and await tenants.holds(documents.tenant):
        raise IndexLost("documents of this tenant are on record, and lost", hint=RESTORE_TENANT_HINT)


async def note_written(documents: TenantDocuments, tenants: Tenants) -> None:
    """Note that the tenant holds documents, unless another client has just removed what was written."""
    if await tenants.note(documents.tenant, holds=True) and await _is_empty(documents):
        await tenants.note(documents.tenant, holds=False)


async def note_before_removal(documents: TenantDocuments, tenants: Tenants, keys: Collection[DocumentKey]) -> None:
    """Note that the tenant will hold nothing if these are its last documents."""
    headers = await documents.page("", len(keys) + 1, NO_FILTERS)
    if not headers:
        await require_kept(documents, tenants)
    elif all(header.key in keys for header in headers):
        await tenants.note(documents.tenant, holds=False)


async def note_removed(documents: TenantDocuments, tenants: Tenants) -> None:
    """Note that the tenant holds nothing any more: several clients together may have removed the rest."""
    if await _is_empty(documents):
        await tenants.note(documents.tenant, holds=False)


async def _is_empty(documents: TenantDocuments) -> bool:
    return not await documents.page("", 1, NO_FILTERS)
