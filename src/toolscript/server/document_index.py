"""Opens the live document index, and never makes an empty one where documents have been."""

from dataclasses import dataclass

from toolscript.core.errors import IndexMissing, ModelMismatch
from toolscript.core.postgres.pool import Pool
from toolscript.core.qdrant.collections import list_collections
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.settings.service import Settings
from toolscript.documents.lost import index_lost, require_any
from toolscript.documents.model.points import DocumentCard, VersionState
from toolscript.documents.ports import DocumentVersions
from toolscript.documents.postgres import PostgresDocumentVersions, PostgresTenants
from toolscript.documents.qdrant.collection import (
    QdrantDocuments,
    create_documents,
    documents_of,
    live_collection_of,
    make_documents_live,
    open_collection_version,
    open_documents,
)
from toolscript.documents.qdrant.layout import DocumentLayout, declared_fields
from toolscript.server.stores import Stores, model_source


async def recorded_live(versions: DocumentVersions) -> str | None:
    """Return the live index version on record; while there are two versions, the alias follows the record."""
    return next((version.name for version in await versions.all() if version.state is VersionState.LIVE), None)


async def open_index(settings: Settings, engine: Qdrant, model: ModelCard) -> QdrantDocuments:
    """Open the live version by its alias, or create one for this model, without asking the record."""
    alias, layout = settings.qdrant_documents_alias, document_layout(settings)
    return await open_documents(engine, alias, DocumentCard(model), layout, model_source(settings))


@dataclass(frozen=True)
class LiveIndex:
    """The live version: that on record, else that of the alias, else the only one that has documents."""

    settings: Settings
    engine: Qdrant
    pool: Pool

    @classmethod
    def of(cls, settings: Settings, stores: Stores) -> "LiveIndex":
        return cls(settings, stores.qdrant, stores.pool)

    @property
    def versions(self) -> PostgresDocumentVersions:
        return PostgresDocumentVersions(self.pool)

    @property
    def tenants(self) -> PostgresTenants:
        return PostgresTenants(self.pool)

    async def name(self) -> str | None:
        alias = self.settings.qdrant_documents_alias
        return await recorded_live(self.versions) or await live_collection_of(self.engine, alias)

    async def open(self) -> QdrantDocuments | None:
        """Open the version; None if no document was ever put. Raise IndexLost if there were some.

        The alias is set if it is not right: a snapshot does not hold it.
        """
        name = await self.name() or await self._only_one()
        try:
            index = await self._opened(name) if name else None
        except IndexMissing:
            index = None
        if index is not None:
            await require_any(index, self.tenants)
            await make_documents_live(self.engine, self.settings.qdrant_documents_alias, index.name)
        elif await self.tenants.holders(or_unknown=True):
            raise index_lost()
        return index

    async def counts(self) -> tuple[int, int]:
        """Return about how many documents the version has (0 if it is missing), and how many tenants hold some."""
        name = await self.name()
        try:
            index = await documents_of(self.engine, name, document_layout(self.settings)) if name else None
            documents = await index.documents() if index else 0
        except IndexMissing:
            documents = 0
        return documents, await self.tenants.holders()

    async def open_or_create(self, model: ModelCard) -> QdrantDocuments:
        """Open the version, or create one for this model if no document was ever put."""
        index = await self.open()
        if index is not None:
            return index
        card = DocumentCard(model)
        name = f"{self.settings.qdrant_documents_alias}__{card.fingerprint}"
        return await self.create(name, card, is_on_record=await recorded_live(self.versions) is not None)

    async def create(self, name: str, card: DocumentCard, *, is_on_record: bool = True) -> QdrantDocuments:
        """Create an empty version and make it live. `is_on_record`: it replaces the one on record."""
        layout, source = document_layout(self.settings), model_source(self.settings)
        index = await create_documents(self.engine, name, card, layout, source)
        if is_on_record:
            await self.versions.begin_empty(name)
        await make_documents_live(self.engine, self.settings.qdrant_documents_alias, name)
        return index

    async def _opened(self, name: str) -> QdrantDocuments:
        return await open_collection_version(self.engine, name, document_layout(self.settings))

    async def _only_one(self) -> str | None:
        """Return the only version with documents. It has lost its alias, and was never on record."""
        listed = await list_collections(self.engine, self.settings.qdrant_documents_alias)
        names = [collection.origin.collection for collection in listed if collection.points]
        return names[0] if len(names) == 1 else None


def document_layout(settings: Settings) -> DocumentLayout:
    return DocumentLayout(
        settings.document_shards, settings.qdrant_replicas, declared_fields(settings.document_fields)
    )


def require_same_texts(version: QdrantDocuments) -> None:
    if version.card != DocumentCard(version.card.model):
        raise ModelMismatch(
            f"the documents in {version.name} were chunked and analyzed by another version of this program",
            hint="`toolscript reindex documents` rebuilds the index; the other version can serve it meanwhile",
        )
