"""Commands on tenants for the operator. They use the engines directly, not a running service."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolscript.core.auth.model import Scope, Tenant
from toolscript.core.auth.signing import make_keys, sign_token
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.results import DocumentKey
from toolscript.core.values import OnProgress, Progress
from toolscript.documents import tenants
from toolscript.documents.client.files import ExportFile, document_line
from toolscript.documents.model.document import document_key
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import DocumentIndex, Tenants, TenantShards
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants, tenant_lock
from toolscript.documents.qdrant.collection import QdrantDocuments, documents_of
from toolscript.documents.schemas import TenantShown
from toolscript.documents.tenants import TenantExport, TenantList
from toolscript.server.audit import recorded
from toolscript.server.document_index import LiveIndex
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, open_stores
from toolscript.server.tenancy import token_rules


@dataclass(frozen=True)
class _Opened:
    pool: Pool
    tenants: Tenants
    index: DocumentIndex
    places: TenantShards
    other_versions: Sequence[QdrantDocuments]


def list_tenants(*, after: str, limit: int) -> list[dict[str, object]]:
    async def rows() -> list[dict[str, object]]:
        async with _open() as opened:
            listed = TenantList(opened.index, opened.places, opened.tenants)
            page = await listed.page(after, limit)
            return [TenantShown.of(usage).model_dump(mode="json") for usage in page]

    return asyncio.run(rows())


def move_tenant(name: str, *, anew: bool, on_progress: OnProgress) -> dict[str, object]:
    async def moved() -> dict[str, object]:
        tenant = Tenant(name)
        async with _open() as opened, tenant_lock(opened.pool, tenant):
            passages = await opened.places.move_to_own_shard(tenant, on_progress, anew=anew)
            return {"tenant": name, "chunks": passages, "own_shard": True}

    with recorded("tenant.move", name) as change:
        done = asyncio.run(moved())
        change.count = 1
    return done


def export_tenant(name: str, *, out: str, on_progress: OnProgress) -> dict[str, object]:
    """Export to a file, resuming an earlier run; `-` is stdout."""

    async def written() -> dict[str, object]:
        tenant = Tenant(name)
        async with _open() as opened:
            export = TenantExport(opened.index.of(tenant))
            total, done = (await opened.index.of(tenant).count(NO_FILTERS)).value, 0
            with _open_output(out) as (ids, write):
                async for document in export.documents(_last_key(tenant, ids, out)):
                    write(document_line(document))
                    done += 1
                    on_progress(Progress("documents exported", done, max(total, done)))
        return {"tenant": name, "documents": done, "of": total, "file": out, "left_out": export.left_out}

    return asyncio.run(written())


def erase_tenant(name: str, on_progress: OnProgress) -> dict[str, object]:
    with recorded("tenant.erase", name) as change:
        done = erase(name, change.following(on_progress))
        change.details |= {"documents": done["documents"], "chunks": done["chunks"]}
        change.count = int(str(done["documents"])) or int(bool(done["was_known"]))
    return done


def erase(name: str, on_progress: OnProgress) -> dict[str, object]:
    """Erase, as a part of what another entry of the audit names."""

    async def erased() -> dict[str, object]:
        tenant = Tenant(name)
        async with _open() as opened, tenant_lock(opened.pool, tenant):
            documents = opened.index.of(tenant)
            for version in opened.other_versions:
                await version.places().erase(tenant)
            done = await tenants.erase_tenant(documents, opened.places, opened.tenants, on_progress)
            counts = {"documents": done.documents, "chunks": done.passages, "was_known": done.was_known}
            return {"tenant": name, **counts}

    return asyncio.run(erased())


def make_tenant_keys(folder: str) -> dict[str, object]:
    files = make_keys(Path(folder))
    return {"signing_key": str(files.private), "jwt_keys": str(files.public), "kid": files.kid}


def tenant_token(
    name: str,
    *,
    key: str,
    issuer: str | None,
    plan: str,
    subject: str,
    scopes: Sequence[Scope],
    namespaces: Sequence[str],
    hours: float,
) -> str:
    rules = token_rules(load_settings())
    rules = replace(rules, issuer=issuer) if issuer else rules
    return sign_token(
        Path(key),
        rules,
        Tenant(name),
        plan=plan,
        subject=subject,
        scopes=scopes,
        namespaces=namespaces,
        hours=hours,
    )


@asynccontextmanager
async def _open() -> AsyncIterator[_Opened]:
    settings = load_settings()
    async with open_stores(settings) as stores:
        index = await LiveIndex.of(settings, stores).open()
        if index is None:
            raise NotFound("no document was ever put here", hint="`toolscript documents put` puts some")
        yield _Opened(
            stores.pool, PostgresTenants(stores.pool), index, index.places(), await _other_versions(stores, index)
        )


async def _other_versions(stores: Stores, live: QdrantDocuments) -> list[QdrantDocuments]:
    """Open the index versions beside the live one: those being built or kept."""
    names = [
        version.name for version in await PostgresDocumentVersions(stores.pool).all() if version.name != live.name
    ]
    return [await documents_of(stores.qdrant, name, live.layout) for name in names]


def _last_key(tenant: Tenant, ids: Sequence[str], out: str) -> DocumentKey:
    """Return the key of the last exported document. Raise if the ids are not in the key order of this tenant."""
    keys = [document_key(tenant, id_) for id_ in ids]
    if keys != sorted(set(keys)):
        raise InvalidRequest(
            f"{out} is not an export of tenant {tenant}", hint="choose a file that does not exist yet"
        )
    return keys[-1] if keys else ""


@contextmanager
def _open_output(out: str) -> Iterator[tuple[Sequence[str], Callable[[bytes], object]]]:
    """Yield the ids at the end of the output, and a function that appends to it."""
    if out == "-":
        yield [], sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    file = ExportFile(Path(out))
    try:
        yield file.last_ids(), file.write
    finally:
        file.close()
