"""Opens the live document index."""

from toolscript.core.errors import ModelMismatch
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.settings.service import Settings
from toolscript.documents.model.points import DocumentCard, VersionState
from toolscript.documents.ports import DocumentVersions
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.qdrant.layout import DocumentLayout, declared_fields
from toolscript.server.stores import model_source


async def recorded_live(versions: DocumentVersions) -> str | None:
    """Return the live index version on record; while there are two versions, the alias follows the record."""
    return next((version.name for version in await versions.all() if version.state is VersionState.LIVE), None)


async def open_index(settings: Settings, engine: Qdrant, model: ModelCard) -> QdrantDocuments:
    """Open the live version, or create one for this model if there is none."""
    alias, layout = settings.qdrant_documents_alias, document_layout(settings)
    return await open_documents(engine, alias, DocumentCard(model), layout, model_source(settings))


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
