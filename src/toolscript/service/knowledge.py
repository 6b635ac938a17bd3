"""Knowledge: what is wired to what."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from toolscript.adapters import qdrant
from toolscript.errors import ModelMismatch, SetupError
from toolscript.model.models import ModelCard
from toolscript.model.tenancy import Scope
from toolscript.ports import Embedder, Index
from toolscript.search.knowledge.search import KnowledgeSearch
from toolscript.service.knowledge_indexes import knowledge_card, knowledge_indexes
from toolscript.service.library import open_reader
from toolscript.service.seeing import Seeing
from toolscript.service.tenancy import Tenancy
from toolscript.settings import Settings
from toolscript.surfaces.http.visitors import VisitorOf, visitors_of


def visitors(settings: Settings, tenancy: Tenancy, seeing: Seeing) -> VisitorOf:
    return visitors_of(
        seeing.callers(tenancy.callers) if tenancy.callers else None,
        seeing.budget(tenancy.budget),
        public_scopes=public_scopes(settings),
        public_requests_per_minute=settings.public_requests_per_minute,
        default_plan=tenancy.default_plan,
        debug_bypass=tenancy.debug_bypass,
    )


def public_scopes(settings: Settings) -> frozenset[Scope]:
    try:
        return frozenset(Scope(name) for name in settings.public_scopes.split())
    except ValueError:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_SCOPES names a scope that is none", hint=f"there are {', '.join(Scope)}"
        ) from None


@asynccontextmanager
async def open_knowledge(
    settings: Settings, engine: qdrant.Qdrant, embedder: Embedder
) -> AsyncIterator[KnowledgeSearch | None]:
    """None where no library is named. One that is empty is asked again by every search until it is not."""
    if not settings.mongo_url.get_secret_value():
        yield None
        return
    async with open_reader(settings) as library:
        opening = partial(open_indexes, settings, engine, embedder.model)
        yield KnowledgeSearch(embedder, opening, library, deadline_seconds=settings.deadline_seconds)


async def open_indexes(settings: Settings, engine: qdrant.Qdrant, model: ModelCard) -> tuple[Index, Index]:
    """The live ones. Serving makes none: what is not there has not been ingested."""
    card = knowledge_card(model)
    chunks, extractions = knowledge_indexes(engine, settings)
    for indexes in (chunks, extractions):
        live = await indexes.live()
        if live is None:
            raise SetupError("the library is empty", hint="`toolscript ingest PATH...` fills it")
        if live != card.fingerprint:
            raise ModelMismatch(
                f"the library's index {live} was made with another model or layout than {card.fingerprint}",
                hint="`toolscript ingest --reindex` makes it anew for this model",
            )
    return await chunks.open(card), await extractions.open(card)
