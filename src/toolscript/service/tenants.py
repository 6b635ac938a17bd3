"""What whoever runs an installation does with tenants. They talk to the engines, not to a running service."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolscript.adapters import qdrant
from toolscript.adapters.export_files import ExportFile, line_of
from toolscript.adapters.jwt_tokens import make_keys, sign_token
from toolscript.adapters.postgres import PostgresTenants
from toolscript.errors import Conflict, NotFound
from toolscript.model.documents import document_key
from toolscript.model.filters import NO_FILTERS
from toolscript.model.progress import OnProgress, Progress
from toolscript.model.tenancy import KnownTenant, Tenant
from toolscript.ports import DocumentIndex, TenantPlaces, Tenants
from toolscript.service.documents import document_layout
from toolscript.service.parts import open_stores
from toolscript.service.tenancy import token_rules
from toolscript.settings import load_settings
from toolscript.sync.tenant_export import exported

# So many tenants are counted at once.
AT_ONCE = 8


@dataclass(frozen=True)
class _Opened:
    tenants: Tenants
    index: DocumentIndex
    places: TenantPlaces


def list_tenants(*, after: str, limit: int) -> list[dict[str, object]]:
    async def rows() -> list[dict[str, object]]:
        async with _open() as opened:
            known = await opened.tenants.page(after, limit)
            found: list[dict[str, object]] = []
            for start in range(0, len(known), AT_ONCE):
                found += await asyncio.gather(*(_row(opened, one) for one in known[start : start + AT_ONCE]))
            return found

    return asyncio.run(rows())


def move_tenant(name: str, *, anew: bool, on_progress: OnProgress) -> dict[str, object]:
    async def moved() -> dict[str, object]:
        async with _open() as opened:
            passages = await opened.places.move_to_own_shard(Tenant(name), on_progress, anew=anew)
            return {"tenant": name, "passages": passages, "own_shard": True}

    return asyncio.run(moved())


def export_tenant(name: str, *, out: str, on_progress: OnProgress) -> dict[str, object]:
    """To a file, going on where an earlier run has ended; `-`: to stdout."""

    async def written() -> dict[str, object]:
        tenant = Tenant(name)
        async with _open() as opened:
            shelf = opened.index.of(tenant)
            total, done = (await shelf.count(NO_FILTERS)).value, 0
            with _place(out) as (last, write):
                async for document in exported(shelf, document_key(tenant, last) if last else ""):
                    write(line_of(document))
                    done += 1
                    on_progress(Progress("documents exported", done, max(total, done)))
        return {"tenant": name, "documents": done, "of": total, "file": out}

    return asyncio.run(written())


def erase_tenant(name: str, on_progress: OnProgress) -> dict[str, object]:
    """The documents go first: as long as the tenant is listed, it can be erased again."""

    async def erased() -> dict[str, object]:
        tenant = Tenant(name)
        async with _open() as opened:
            removed = await opened.places.erase(tenant, on_progress)
            left = await opened.places.passages(tenant)
            if left:
                raise Conflict(
                    f"{left} passages of tenant {name} were written while it was erased",
                    hint="take its tokens away, then run it again",
                )
            await opened.tenants.forget(tenant)
        return {"tenant": name, "passages": removed, "left": left}

    return asyncio.run(erased())


def make_tenant_keys(folder: str) -> dict[str, object]:
    files = make_keys(Path(folder))
    return {"signing_key": str(files.private), "jwt_keys": str(files.public), "kid": files.kid}


def tenant_token(name: str, *, key: str, issuer: str | None, plan: str, subject: str, hours: float) -> str:
    rules = token_rules(load_settings())
    rules = replace(rules, issuer=issuer) if issuer else rules
    return sign_token(Path(key), rules, Tenant(name), plan=plan, subject=subject, hours=hours)


@asynccontextmanager
async def _open() -> AsyncIterator[_Opened]:
    settings = load_settings()
    async with open_stores(settings) as stores:
        layout = document_layout(settings)
        index = await qdrant.live_documents(stores.qdrant, settings.qdrant_documents_alias, layout)
        if index is None:
            raise NotFound("no document was ever put here", hint="`toolscript documents put` puts some")
        yield _Opened(
            PostgresTenants(stores.pool), index, qdrant.QdrantPlaces(stores.qdrant, index.collection, layout)
        )


async def _row(opened: _Opened, known: KnownTenant) -> dict[str, object]:
    documents, passages, own = await asyncio.gather(
        opened.index.of(known.tenant).count(NO_FILTERS),
        opened.places.passages(known.tenant),
        opened.places.own_shard(known.tenant),
    )
    return {
        "tenant": known.tenant.name,
        "documents": documents.value,
        "documents_are": documents.exactness.value,
        "passages": passages,
        "own_shard": own,
        "since": known.since,
    }


@contextmanager
def _place(out: str) -> Iterator[tuple[str, Callable[[bytes], object]]]:
    """The id that was written last, and how to write on."""
    if out == "-":
        yield "", sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    file = ExportFile(Path(out))
    try:
        yield file.last_id(), file.write
    finally:
        file.close()
