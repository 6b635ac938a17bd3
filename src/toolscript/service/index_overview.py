"""Which collection is on which model, and what is under way in it."""

import asyncio
from collections.abc import Mapping, Sequence

from toolscript.adapters import qdrant
from toolscript.adapters.postgres import PostgresDocumentVersions
from toolscript.model.document_versions import DocumentVersion, VersionState
from toolscript.model.index_status import IndexStatus
from toolscript.service.parts import Stores, open_stores
from toolscript.settings.service import Settings, load_settings


def list_indexes() -> Sequence[IndexStatus]:
    async def look() -> Sequence[IndexStatus]:
        settings = load_settings()
        async with open_stores(settings) as stores:
            return await overview(settings, stores)

    return asyncio.run(look())


async def overview(settings: Settings, stores: Stores) -> Sequence[IndexStatus]:
    library = (settings.qdrant_chunks_alias, settings.qdrant_extractions_alias)
    return [
        *await _of_tools(settings.qdrant_alias, stores),
        *await _of_documents(settings.qdrant_documents_alias, stores),
        *[_shown("knowledge", one) for alias in library for one in await _found(stores, alias)],
    ]


async def _of_tools(alias: str, stores: Stores) -> list[IndexStatus]:
    shown = list[IndexStatus]()
    generations = {f"{alias}__{one.fingerprint}": one for one in await stores.dirty.generations()}
    for one in await _found(stores, alias):
        generation = generations.get(one.origin.collection)
        waiting = (await stores.dirty.pending(generation.id)).total if generation else 0
        under_way = f"{waiting:,} items wait for a worker" if waiting else ""
        shown.append(_shown("tools", one, generation.state.value if generation else "", under_way))
    return shown


async def _of_documents(alias: str, stores: Stores) -> list[IndexStatus]:
    versions = PostgresDocumentVersions(stores.pool)
    known: Mapping[str, DocumentVersion] = {one.name: one for one in await versions.all()}
    shown = list[IndexStatus]()
    for one in await _found(stores, alias):
        version = known.get(one.origin.collection)
        under_way = "" if version is None else _under_way(version, await versions.pending(version.name))
        shown.append(_shown("documents", one, version.state.value if version else "", under_way))
    return shown


def _under_way(version: DocumentVersion, changes: int) -> str:
    said = [f"{changes:,} changes to bring over"] if changes else []
    if version.state is VersionState.BUILDING:
        at = version.position
        said.insert(
            0, "filled" if at.done else f"filled up to tenant {at.tenant}" if at.tenant else "being filled"
        )
    return ", ".join(said)


async def _found(stores: Stores, alias: str) -> Sequence[qdrant.FoundCollection]:
    return await qdrant.found_collections(stores.qdrant, alias)


def _shown(product: str, one: qdrant.FoundCollection, state: str = "", under_way: str = "") -> IndexStatus:
    """What nobody recorded is what the alias says it is."""
    state = state or ("live" if one.is_live else "previous")
    name, model = one.origin.collection, one.origin.model.name
    return IndexStatus(product, name, state, model, one.points, one.shards, under_way)
