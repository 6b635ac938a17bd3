"""An evaluation of documents over HTTP fails on every error that would make its metrics worthless."""

from collections.abc import AsyncIterator

import pytest

from tests.doubles import MemorySpans
from toolscript.core.auth.model import Tenant
from toolscript.core.errors import EmbedderUnavailable, SetupError
from toolscript.core.health import Health
from toolscript.core.retrieval.model import Vector
from toolscript.core.web.auth import authenticator_of
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.testing import HashEmbedder
from toolscript.testing.auth import MemoryRequestBudget
from toolscript.testing.documents import MemoryDocuments, MemoryTenants
from toolscript_eval.documents import DocumentsOverHttp, documents_over_http

HYBRID = {"search_type": "hybrid", "fusion": "zscore"}


class FailingQueries(HashEmbedder):
    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable(f"no vector for {text}")


async def all_is_well() -> Health:
    return Health({})


def routes(embedder: HashEmbedder) -> DocumentRoutes:
    index = MemoryDocuments(DocumentCard(embedder.model))
    return DocumentRoutes(
        DocumentSearch(embedder, index, spans=MemorySpans(), cursor_secret=b"secret"),
        DocumentService(embedder, index, MemoryTenants()),
        authenticator_of(None, MemoryRequestBudget(), debug_bypass=True),
        all_is_well,
    )


@pytest.fixture
async def api() -> AsyncIterator[DocumentsOverHttp]:
    async with documents_over_http(routes(HashEmbedder()), Tenant("judged")) as opened:
        yield opened


async def test_what_is_put_is_found_by_its_id(api: DocumentsOverHttp) -> None:
    await api.put([{"id": "w", "title": "Whales", "text": "they sing"}, {"id": "t", "text": "tax returns"}])
    assert (await api.search("whales sing", 10, HYBRID))[0] == "w"
    assert await api.search("tax", 1, {"search_type": "keyword"}) == ["t"]


async def test_a_document_that_is_refused_ends_the_measurement(api: DocumentsOverHttp) -> None:
    with pytest.raises(SetupError, match="not all documents were stored"):
        await api.put([{"id": "w", "text": "whales"}, {"id": "empty", "text": " "}])


async def test_a_search_that_is_refused_ends_the_measurement(api: DocumentsOverHttp) -> None:
    with pytest.raises(SetupError, match="the API answered 4"):
        await api.search("whales", 10, {"search_type": "keyword", "fusion": "rrf"})


async def test_a_search_without_one_of_its_parts_ends_the_measurement() -> None:
    async with documents_over_http(routes(FailingQueries()), Tenant("judged")) as api:
        await api.put([{"id": "w", "text": "whales"}])
        with pytest.raises(SetupError, match="embedding"):
            await api.search("whales", 10, HYBRID)
