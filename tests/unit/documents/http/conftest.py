"""The document routes over an in-memory index, and over Qdrant."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.documents.http.builders import Client, Parts, app_of, client_of
from toolscript.documents.model.points import DocumentCard
from toolscript.testing import HashEmbedder
from toolscript.testing.documents import MemoryDocuments


@pytest.fixture
def parts() -> Parts:
    return Parts(MemoryDocuments(DocumentCard(HashEmbedder().model)))


@pytest.fixture
async def api(parts: Parts) -> AsyncIterator[Client]:
    async with client_of(app_of(parts.routes())) as client:
        yield client


@pytest.fixture(params=["memory", "qdrant"])
def every_parts(request: pytest.FixtureRequest) -> Parts:
    """For tests that also run on the real engine."""
    if request.param == "memory":
        memory_parts: Parts = request.getfixturevalue("parts")
        return memory_parts
    return Parts(request.getfixturevalue("qdrant_documents"))


@pytest.fixture
async def every_api(every_parts: Parts) -> AsyncIterator[Client]:
    async with client_of(app_of(every_parts.routes())) as client:
        yield client
