"""The collection of all tenants' documents."""

from dataclasses import asdict
from typing import Any, cast

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import Qdrant, exists_already, translated
from toolscript.adapters.qdrant.documents.layout import DocumentLayout, create_request, field_requests
from toolscript.adapters.qdrant.documents.places import make_shards, require_shards
from toolscript.adapters.qdrant.documents.tenant_documents import QdrantTenantDocuments
from toolscript.adapters.qdrant.documents.tenant_points import TenantPoints
from toolscript.adapters.qdrant.values import from_value
from toolscript.errors import ModelMismatch, SetupError, ToolscriptError
from toolscript.model.document_cards import DocumentCard
from toolscript.model.models import ModelCard
from toolscript.model.tenancy import Tenant


class QdrantDocuments:
    def __init__(self, qdrant: Qdrant, collection: str, card: DocumentCard, layout: DocumentLayout) -> None:
        self._qdrant = qdrant
        self.collection = collection
        self._card = card
        self._layout = layout

    @property
    def card(self) -> DocumentCard:
        return self._card

    def of(self, tenant: Tenant) -> QdrantTenantDocuments:
        return QdrantTenantDocuments(TenantPoints(self._qdrant, self.collection, tenant, self._layout.shards))

    async def ready(self) -> None:
        request = wire.GetCollectionInfoRequest(collection_name=self.collection)
        await _collections(self._qdrant, "Get", request)


async def open_documents(
    qdrant: Qdrant, alias: str, card: DocumentCard, layout: DocumentLayout
) -> QdrantDocuments:
    """Made if it is not there yet; refused when what is there was made by another model."""
    name = f"{alias}__{card.fingerprint}"
    live = await _live(qdrant, alias)
    if live not in (None, name):
        raise ModelMismatch(
            f"the documents in {live} were indexed by another model or in another way than this one, {name}",
            hint="set TOOLSCRIPT_EMBEDDING_MODEL to what it was; or `toolscript tenants export`, a new "
            "TOOLSCRIPT_QDRANT_DOCUMENTS_ALIAS and `toolscript documents put`",
        )
    await _create(qdrant, name, card, layout)
    if live is None:
        create = wire.CreateAlias(collection_name=name, alias_name=alias)
        await _collections(
            qdrant, "UpdateAliases", wire.ChangeAliases(actions=[wire.AliasOperations(create_alias=create)])
        )
    return QdrantDocuments(qdrant, name, card, layout)


async def live_documents(qdrant: Qdrant, alias: str, layout: DocumentLayout) -> QdrantDocuments | None:
    """Those that are there, whatever model made them; for who neither embeds nor puts."""
    live = await _live(qdrant, alias)
    if live is None:
        return None
    found = await _collections(qdrant, "Get", wire.GetCollectionInfoRequest(collection_name=live))
    await require_shards(qdrant, live, layout.shards)
    made_by = {name: from_value(value) for name, value in found.result.config.metadata.items()}
    card = DocumentCard(
        ModelCard(**cast("Any", made_by["model"])),
        cast("int", made_by["words_version"]),
        cast("int", made_by["passages_version"]),
    )
    return QdrantDocuments(qdrant, live, card, layout)


async def _create(qdrant: Qdrant, name: str, card: DocumentCard, layout: DocumentLayout) -> None:
    metadata = {"fingerprint": card.fingerprint, **asdict(card)}
    is_new = True
    try:
        await _collections(qdrant, "Create", create_request(name, card, metadata, layout))
    except ToolscriptError as error:
        if not exists_already(error):
            raise
        is_new = False
        await _require_same_shards(qdrant, name, layout)
    await make_shards(qdrant, name, layout.shards, layout.replicas)
    # A field that is declared later takes as long as there are passages: nobody waits for that.
    for request in field_requests(name, layout, wait=is_new):
        with translated():
            await qdrant.points.CreateFieldIndex(request, timeout=qdrant.timeout_seconds)


async def _require_same_shards(qdrant: Qdrant, name: str, layout: DocumentLayout) -> None:
    """A collection with shard keys cannot be read without them, nor one without by them."""
    found = await _collections(qdrant, "Get", wire.GetCollectionInfoRequest(collection_name=name))
    is_custom = found.result.config.params.sharding_method == wire.ShardingMethod.Custom
    if is_custom != bool(layout.shards):
        raise SetupError(
            f"{name} was made {'with' if is_custom else 'without'} shards of tenants",
            hint="set TOOLSCRIPT_DOCUMENT_SHARDS to what it was when the first document was put",
        )


async def _live(qdrant: Qdrant, alias: str) -> str | None:
    answer = await _collections(qdrant, "ListAliases", wire.ListAliasesRequest())
    return next((str(one.collection_name) for one in answer.aliases if one.alias_name == alias), None)


async def _collections(qdrant: Qdrant, method: str, request: object) -> Any:
    with translated():
        return await getattr(qdrant.collections, method)(request, timeout=qdrant.timeout_seconds)
