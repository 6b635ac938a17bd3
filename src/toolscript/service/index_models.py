"""The model of an index: the configured one, or the one that made it, while a change of models is under way.

So tools, documents and knowledge may be on different models, and none of them waits for another.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from toolscript.errors import EmbedderUnavailable, ModelMismatch, SetupError
from toolscript.model.models import IndexOrigin, Matrix, ModelCard, Vector
from toolscript.ports import Embedder
from toolscript.service.parts import open_embedder
from toolscript.settings.service import Settings

Product = Literal["tools", "documents", "knowledge"]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def embedder_of(
    origin: IndexOrigin, settings: Settings, configured: Embedder, product: Product, *, parallel: int = 1
) -> AsyncIterator[Embedder]:
    """The model that made the index; refused where it is not to be had here."""
    if origin.model == configured.model:
        yield configured
        return
    async with AsyncExitStack() as stack:
        opening = open_embedder(_of_origin(settings, origin, product), parallel=parallel)
        try:
            own = await stack.enter_async_context(opening)
        except SetupError as error:
            raise _absent(origin, product, error.message) from error
        if own.model != origin.model:
            raise _absent(origin, product, f"{own.model.name} is another model")
        yield own


@asynccontextmanager
async def searching_embedder(
    origin: IndexOrigin | None, settings: Settings, configured: Embedder, product: Product, *, parallel: int = 1
) -> AsyncIterator[Embedder]:
    """The same for who only searches: without the model, words are searched for alone."""
    if origin is None:
        yield configured
        return
    async with AsyncExitStack() as stack:
        opening = embedder_of(origin, settings, configured, product, parallel=parallel)
        facts = {"part": product, "model": origin.model.name}
        try:
            own = await stack.enter_async_context(opening)
            if own is not configured:
                logger.warning("searched with the model of its index, not with the configured one", extra=facts)
        except ModelMismatch as error:
            logger.warning("searched by words alone", extra={**facts, "reason": f"{error.message}; {error.hint}"})
            own = AbsentModel(origin.model)
        yield own


class AbsentModel:
    """A model that made an index and is not here: its index can be opened, and nothing be embedded for it."""

    def __init__(self, card: ModelCard) -> None:
        self._card = card

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, _text: str) -> Vector:
        raise self._unavailable()

    async def embed_passages(self, _texts: Sequence[str]) -> Matrix:
        raise self._unavailable()

    def _unavailable(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"the model {self._card.name} is not here", hint="the log of the start says more"
        )


def _of_origin(settings: Settings, origin: IndexOrigin, product: Product) -> Settings:
    model = origin.model
    if model.pooling == "endpoint":
        given: dict[str, object] = {
            "embedding_model": model.name,
            "embedding_revision": model.revision,
            "embedding_dimensions": model.dimensions,
            "embedding_query_prefix": model.query_prefix,
        }
        return settings.model_copy(update=given)
    source = _named(settings, product) or origin.source
    if not source:
        raise _absent(origin, product, "where that model is was not recorded")
    return settings.model_copy(update={"embedding_model": source, "embedding_url": ""})


def _named(settings: Settings, product: Product) -> str:
    return {
        "tools": settings.tools_model,
        "documents": settings.documents_model,
        "knowledge": settings.knowledge_model,
    }[product]


def _absent(origin: IndexOrigin, product: Product, reason: str) -> ModelMismatch:
    return ModelMismatch(
        f"{origin.collection} was made by the model {origin.model.name}: {reason}",
        hint=f"set TOOLSCRIPT_{product.upper()}_MODEL to its name or folder; "
        f"`toolscript reindex {product}` builds the index with the configured model",
    )
