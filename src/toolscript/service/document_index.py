"""The index of documents in the engine: which version is live, and how it lies there."""

from toolscript.adapters import qdrant
from toolscript.errors import ModelMismatch
from toolscript.model.document_cards import DocumentCard
from toolscript.model.document_versions import VersionState
from toolscript.model.models import ModelCard
from toolscript.ports import DocumentVersions
from toolscript.service.parts import model_source
from toolscript.settings.service import Settings


async def recorded_live(versions: DocumentVersions) -> str | None:
    """While there are two versions, the record says which is live; the alias follows it."""
    return next((one.name for one in await versions.all() if one.state is VersionState.LIVE), None)


async def open_index(settings: Settings, engine: qdrant.Qdrant, model: ModelCard) -> qdrant.QdrantDocuments:
    """The live version; where there is none, one for this model."""
    alias, layout = settings.qdrant_documents_alias, document_layout(settings)
    return await qdrant.open_documents(engine, alias, DocumentCard(model), layout, model_source(settings))


def document_layout(settings: Settings) -> qdrant.DocumentLayout:
    return qdrant.DocumentLayout(
        settings.document_shards, settings.qdrant_replicas, qdrant.declared_fields(settings.document_fields)
    )


def require_same_texts(version: qdrant.QdrantDocuments) -> None:
    if version.card != DocumentCard(version.card.model):
        raise ModelMismatch(
            f"the documents in {version.name} were cut and read in another way than this program does",
            hint="`toolscript reindex documents` builds them anew; the previous program can serve them meanwhile",
        )
