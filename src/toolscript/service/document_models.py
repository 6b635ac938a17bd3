"""The model of a version of the documents' index: the configured one, or the one that made the version."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.adapters import qdrant
from toolscript.errors import ModelMismatch, ToolscriptError
from toolscript.model.document_cards import DocumentCard
from toolscript.model.models import ModelCard
from toolscript.ports import Embedder
from toolscript.service.parts import open_embedder
from toolscript.settings import Settings


@asynccontextmanager
async def embedder_of(
    version: qdrant.QdrantDocuments, settings: Settings, configured: Embedder, *, parallel: int = 1
) -> AsyncIterator[Embedder]:
    """Refused where the model is not to be had here, or this program cuts or reads texts in another way."""
    card = version.card
    if card == DocumentCard(configured.model):
        yield configured
        return
    _require_same_texts(version)
    async with open_embedder(_of_version(settings, version), parallel=parallel) as own:
        if own.model != card.model:
            raise _absent(version, f"{own.model.name} is another model")
        yield own


def model_source(settings: Settings) -> str:
    """What says how to load the configured model; of an endpoint its card says it."""
    return "" if settings.embedding_url else settings.embedding_model


def _of_version(settings: Settings, version: qdrant.QdrantDocuments) -> Settings:
    model: ModelCard = version.card.model
    if model.pooling == "endpoint":
        given: dict[str, object] = {
            "embedding_model": model.name,
            "embedding_revision": model.revision,
            "embedding_dimensions": model.dimensions,
            "embedding_query_prefix": model.query_prefix,
        }
        return settings.model_copy(update=given)
    source = settings.documents_model or version.source
    if not source:
        raise _absent(version, "where that model is was not recorded")
    return settings.model_copy(update={"embedding_model": source, "embedding_url": ""})


def _require_same_texts(version: qdrant.QdrantDocuments) -> None:
    now = DocumentCard(version.card.model)
    if now != version.card:
        raise ModelMismatch(
            f"the documents in {version.name} were cut and read in another way than this program does",
            hint="`toolscript reindex documents` builds them anew; the previous program can serve them meanwhile",
        )


def _absent(version: qdrant.QdrantDocuments, reason: str) -> ToolscriptError:
    return ModelMismatch(
        f"the documents in {version.name} were made by the model {version.card.model.name}: {reason}",
        hint="set TOOLSCRIPT_DOCUMENTS_MODEL to its name or folder; "
        "`toolscript reindex documents` then builds them with the configured one",
    )
