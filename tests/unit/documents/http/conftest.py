"""The routes of documents over an index in memory, and over the real one."""

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
    """For what has to hold on the real engine, too."""
    if request.param == "memory":
        kept: Parts = request.getfixturevalue("parts")
        return kept
    return Parts(request.getfixturevalue("qdrant_documents"))


@pytest.fixture
async def every_api(every_parts: Parts) -> AsyncIterator[Client]:
    async with client_of(app_of(every_parts.routes())) as client:
        yield client
