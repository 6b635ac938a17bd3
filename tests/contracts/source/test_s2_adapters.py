"""S2: the stores behind the routes are replaceable, and there are doubles for tests."""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from fastapi import FastAPI

from tests.contracts.source.s2_service import LIBRARY, Json
from tests.unit.documents.http.builders import Client, Parts, app_of, client_of
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.testing import HashEmbedder, MemoryDocuments

SEARCHES: list[Json] = [
    {"search_type": "semantic"},
    {"search_type": "keyword"},
    {"search_type": "hybrid", "fusion": "rrf"},
    {"search_type": "hybrid", "fusion": "zscore"},
    {"search_type": "semantic", "filters": {"must": [{"field": "tags", "op": "in", "value": ["ruling", "tax"]}]}},
    {"search_type": "keyword", "filters": {"must_not": [{"field": "year", "op": "lt", "value": 2022}]}},
]


def in_memory() -> Parts:
    return Parts(MemoryDocuments(DocumentCard(HashEmbedder().model)))


@pytest.fixture
async def both(qdrant_documents: QdrantDocuments) -> AsyncIterator[list[Client]]:
    async with AsyncExitStack() as stack:
        apis = [app_of(parts.routes()) for parts in (in_memory(), Parts(qdrant_documents))]
        clients = [await stack.enter_async_context(client_of(api)) for api in apis]
        for client in clients:
            await client.put(*LIBRARY)
        yield clients


@pytest.mark.states("S2-009", "S2-010", "S2-098")
async def test_the_same_requests_get_the_same_answers_from_every_store(both: list[Client]) -> None:
    for requests in SEARCHES:
        memory, engine = [(await item.search("tax of the harbour", **requests))["hits"] for item in both]
        assert memory, requests
        assert [hit["doc_id"] for hit in memory] == [hit["doc_id"] for hit in engine], requests
        assert [hit["score"] for hit in memory] == pytest.approx([hit["score"] for hit in engine], abs=1e-4)
        assert [hit["snippet"] for hit in memory] == [hit["snippet"] for hit in engine]


@pytest.mark.states("S2-078")
async def test_the_adapters_in_memory_answer_the_same_every_time() -> None:
    answers = []
    for _ in range(2):
        async with client_of(app_of(in_memory().routes())) as client:
            await client.put(*LIBRARY)
            answers.append(
                [(await client.search("tax of the harbour", **requests))["hits"] for requests in SEARCHES]
            )
    assert answers[0] == answers[1]
    assert answers[0][0][0]["doc_id"] == "verdict"


@pytest.mark.states("S2-049", "S2-071")
async def test_took_ms_uses_a_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock goes back by an hour whenever it is read."""
    parts = in_memory()
    hours = itertools.count()
    now = time.time()
    async with client_of(app_of(parts.routes())) as client:
        monkeypatch.setattr(time, "time", lambda: now - 3600 * next(hours))
        monkeypatch.setattr(time, "time_ns", lambda: int((now - 3600 * next(hours)) * 1e9))
        began = time.perf_counter()
        answer = await client.search("tax")
        took_ms = (time.perf_counter() - began) * 1000
    assert 0 < answer["took_ms"] <= took_ms


@pytest.mark.states("S2-002")
def test_the_server_is_a_fastapi_application() -> None:
    api = app_of(in_memory().routes()).api
    assert isinstance(api, FastAPI)
    assert "post" in api.openapi()["paths"]["/search"]
