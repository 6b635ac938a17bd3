"""The collection of all tenants' documents."""

from dataclasses import asdict, replace
from typing import cast

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import ToolscriptError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.collections import origin_of
from toolscript.core.qdrant.connection import Qdrant, call_collections, exists_already, translated
from toolscript.core.qdrant.values import from_value
from toolscript.core.retrieval.model import IndexOrigin
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.layout import DocumentLayout, create_request, field_requests
from toolscript.documents.qdrant.shard_migration import QdrantTenantShards
from toolscript.documents.qdrant.shards import make_shards, shared_shards
from toolscript.documents.qdrant.tenant_documents import IS_HEAD, QdrantTenantDocuments
from toolscript.documents.qdrant.tenant_points import TenantPoints


class QdrantDocuments:
    """One version of the index. `source` is how to load its model; empty: not recorded."""

    def __init__(
        self, qdrant: Qdrant, collection: str, card: DocumentCard, layout: DocumentLayout, source: str = ""
    ) -> None:
        self._qdrant = qdrant
        self.collection = collection
        self._card = card
        self.layout = layout
        self.origin = IndexOrigin(collection, card.model, source)

    @property
    def name(self) -> str:
        return self.collection

    @property
    def card(self) -> DocumentCard:
        return self._card

    async def passages(self) -> int:
        return await self._about(wire.Filter())

    async def documents(self) -> int:
        """Return about how many documents all tenants have."""
        return await self._about(wire.Filter(must=[IS_HEAD]))

    async def _about(self, where: wire.Filter) -> int:
        request = wire.CountPoints(collection_name=self.collection, filter=where, exact=False)
        with translated():
            answer = await self._qdrant.points.Count(request, timeout=self._qdrant.timeout_seconds)
        return int(answer.result.count)

    def of(self, tenant: Tenant) -> QdrantTenantDocuments:
        return QdrantTenantDocuments(TenantPoints(self._qdrant, self.collection, tenant, self.layout.shards))

    def places(self) -> QdrantTenantShards:
        return QdrantTenantShards(self._qdrant, self.collection, self.layout)

    async def ready(self) -> None:
        request = wire.GetCollectionInfoRequest(collection_name=self.collection)
        await call_collections(self._qdrant, "Get", request)


async def open_documents(
    qdrant: Qdrant, alias: str, card: DocumentCard, layout: DocumentLayout, source: str = ""
) -> QdrantDocuments:
    """Open the live version, whatever model built it. Without one, create a version for this model."""
    live = await _live(qdrant, alias)
    if live is not None:
        return await open_collection_version(qdrant, live, layout)
    created = await create_documents(qdrant, f"{alias}__{card.fingerprint}", card, layout, source)
    await make_documents_live(qdrant, alias, created.collection)
    return created


async def open_collection_version(qdrant: Qdrant, collection: str, layout: DocumentLayout) -> QdrantDocuments:
    """Open a version to serve it. Fields that were declared since it was created get their index."""
    await _make_fields(qdrant, collection, layout, wait=False)
    return await documents_of(qdrant, collection, layout)


async def live_documents(qdrant: Qdrant, alias: str, layout: DocumentLayout) -> QdrantDocuments | None:
    live = await _live(qdrant, alias)
    return None if live is None else await documents_of(qdrant, live, layout)


async def documents_of(qdrant: Qdrant, collection: str, layout: DocumentLayout) -> QdrantDocuments:
    """Return a version with the model and the number of shards it was created with."""
    response = await call_collections(qdrant, "Get", wire.GetCollectionInfoRequest(collection_name=collection))
    metadata = response.result.config.metadata
    origin = origin_of(collection, metadata)
    words, passages = (cast("int", from_value(metadata[f"{name}_version"])) for name in ("words", "passages"))
    card = DocumentCard(origin.model, words, passages)
    is_custom = response.result.config.params.sharding_method == wire.ShardingMethod.Custom
    shards = await shared_shards(qdrant, collection) if is_custom else 0
    return QdrantDocuments(qdrant, collection, card, replace(layout, shards=shards), origin.source)


async def create_documents(
    qdrant: Qdrant, name: str, card: DocumentCard, layout: DocumentLayout, source: str = ""
) -> QdrantDocuments:
    """Create a version, or complete one whose creation was interrupted."""
    await _create(qdrant, name, card, layout, source)
    return QdrantDocuments(qdrant, name, card, layout, source)


async def make_documents_live(qdrant: Qdrant, alias: str, name: str) -> None:
    live = await _live(qdrant, alias)
    if live == name:
        return
    gone = [wire.AliasOperations(delete_alias=wire.DeleteAlias(alias_name=alias))] if live else []
    create = wire.AliasOperations(create_alias=wire.CreateAlias(collection_name=name, alias_name=alias))
    await call_collections(qdrant, "UpdateAliases", wire.ChangeAliases(actions=[*gone, create]))


async def drop_documents(qdrant: Qdrant, name: str) -> None:
    await call_collections(qdrant, "Delete", wire.DeleteCollection(collection_name=name))


async def live_collection_of(qdrant: Qdrant, alias: str) -> str | None:
    """Return the live collection. Servers poll it to follow a switch."""
    return await _live(qdrant, alias)


async def _create(qdrant: Qdrant, name: str, card: DocumentCard, layout: DocumentLayout, source: str) -> None:
    metadata = {"fingerprint": card.fingerprint, **asdict(card), "source": source}
    is_new = True
    try:
        await call_collections(qdrant, "Create", create_request(name, card, metadata, layout))
    except ToolscriptError as error:
        if not exists_already(error):
            raise
        is_new = False
    await make_shards(qdrant, name, layout.shards, layout.replicas)
    await _make_fields(qdrant, name, layout, wait=is_new)


async def _make_fields(qdrant: Qdrant, name: str, layout: DocumentLayout, *, wait: bool) -> None:
    """Create the missing field indexes only: changing a collection interrupts its optimization.

    Indexing a field that is declared later takes time for every chunk, so no caller waits for it.
    """
    info = await call_collections(qdrant, "Get", wire.GetCollectionInfoRequest(collection_name=name))
    for request in field_requests(name, layout, wait=wait):
        if request.field_name not in info.result.payload_schema:
            with translated():
                await qdrant.points.CreateFieldIndex(request, timeout=qdrant.timeout_seconds)


async def _live(qdrant: Qdrant, alias: str) -> str | None:
    answer = await call_collections(qdrant, "ListAliases", wire.ListAliasesRequest())
    return next((str(entry.collection_name) for entry in answer.aliases if entry.alias_name == alias), None)
