"""Queries, documents and tokens appear in no log line, whatever fails, at the most verbose level."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.composition.observed_app import client_of, observed_app, settings_of
from tests.unit.server.http.captured_logs import lines, logged
from tests.unit.server.metrics.otlp_receiver import otlp_receiver
from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.embedding.openai import OpenAIEmbedder
from toolscript.core.errors import IndexRejected
from toolscript.core.observability.tracing import trace_headers, trace_ids
from toolscript.core.postgres.pool import open_pool
from toolscript.core.retrieval.ports import Embedder
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.server.observability import open_observability
from toolscript.testing import HashEmbedder

pytestmark = [pytest.mark.requirement("DOC-005")]

QUERY, TEXT, TITLE, VALUE = "querymarkerquery", "textmarkertext", "titlemarkertitle", "valuemarkervalue"
TOKEN, KEY, PASSWORD = "tokenmarkertoken", "keymarkerkey", "passwordmarkerpassword"
PRIVATE = (QUERY, TEXT, TITLE, VALUE, TOKEN, KEY, PASSWORD, "token-of-ann")


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    with EmbeddingEndpoint(HashEmbedder().model.dimensions) as endpoint:
        remote = OpenAIEmbedder(endpoint.url, HashEmbedder().model, api_key=KEY, retries=1, headers=trace_headers)
        yield CachedEmbedder(remote, 100)
        await remote.close()


async def use(client: httpx2.AsyncClient) -> list[int]:
    """Send valid and invalid requests of every kind."""
    document = {"id": "doc-1", "text": f"{TEXT} lies here", "metadata": {"title": TITLE, "field": VALUE}}
    filters = {"must": [{"field": "field", "op": "eq", "value": VALUE}]}
    wrong = {"authorization": f"Bearer {TOKEN}"}
    answers = [
        await client.put("/documents", json={"documents": [document, {"id": "doc-2", "text": 7, TEXT: VALUE}]}),
        await client.put(
            "/documents",
            content=f'{{"id": "doc-3", "text": "{TEXT}"}}\n{{{TEXT}\n',
            headers={"content-type": "application/x-ndjson"},
        ),
        await client.put("/documents", content=f'{{"documents": [{TEXT}'),
        await client.get("/documents/doc-1"),
        await client.get(f"/documents/{TITLE} of {VALUE}.md"),
        await client.delete(f"/documents/a/{TITLE}"),
        await client.post(f"/documents/{TITLE}"),
        await client.get(f"/Documents/{TITLE}"),
        await client.post("/search", json={"query": QUERY, "filters": filters}),
        await client.post("/search", json={"query": QUERY}, headers={"accept": "text/event-stream"}),
        await client.post("/search", json={"query": QUERY, "cursor": VALUE}),
        await client.post("/search", json={"query": [QUERY], TEXT: VALUE}),
        await client.post("/search", json={"query": QUERY}, headers=wrong),
        await client.get(f"/api/v1/search/tools?query={QUERY}"),
        await client.request("DELETE", "/documents", json={"ids": ["doc-1"]}),
    ]
    return [answer.status_code for answer in answers]


async def test_nothing_private_is_in_the_log_of_a_service_that_works(
    embedder: Embedder, qdrant_documents: QdrantDocuments, postgres_url: str, tmp_path: Path
) -> None:
    with otlp_receiver() as receiver, logged("debug", trace_ids=trace_ids) as output:
        settings = settings_of(
            {"otlp_endpoint": receiver.url, "metrics": True, "query_log": "postgres", "query_log_keeps": "results"}
        )
        async with (
            open_pool(postgres_url, size=2) as pool,
            open_observability(settings, pool) as observability,
            client_of(observed_app(observability, embedder, qdrant_documents)) as client,
        ):
            statuses = await use(client)
        sent = b"".join(receiver.raw).decode("utf-8", "replace")
    assert statuses.count(200) >= 5
    assert statuses.count(401) == 1
    requests = [line for line in lines(output) if line["event"] == "request"]
    assert len(requests) == len(statuses)
    assert {"/documents", "/documents/{document_id}", "/search", "/.../..."} <= {item["path"] for item in requests}
    assert all(len(line["trace_id"]) == 32 and line["request_id"] for line in requests)
    assert [item for item in PRIVATE if item in output.getvalue()] == []
    assert [item for item in PRIVATE if item in sent] == []


class Failing:
    """An engine that fails every call in another way, quoting its arguments."""

    def __init__(self, index: DocumentIndex) -> None:
        self.card = index.card
        self._errors = [ValueError, KeyError, RuntimeError, IndexRejected]

    def of(self, tenant: object) -> "Failing":
        self._errors.append(self._errors.pop(0))
        # Our own errors must not quote user data.
        message = "refused" if self._errors[-1] is IndexRejected else " ".join(PRIVATE)
        raise self._errors[-1](message)

    async def ready(self) -> None: ...


async def test_nothing_private_is_in_the_log_of_a_service_that_fails(
    embedder: Embedder, qdrant_documents: QdrantDocuments, tmp_path: Path
) -> None:
    nowhere = f"postgresql://somebody:{PASSWORD}@127.0.0.1:1/nowhere"
    with logged("debug") as output:
        settings = settings_of({"metrics": True, "query_log": "postgres", "query_log_keeps": "results"})
        async with (
            open_pool(nowhere, size=2, wait_seconds=0.2) as pool,
            open_observability(settings, pool) as observability,
        ):
            failing = observed_app(observability, embedder, Failing(qdrant_documents))  # type: ignore[arg-type]
            async with client_of(failing) as client:
                statuses = await use(client)
            async with client_of(observed_app(observability, embedder, qdrant_documents)) as client:
                statuses += await use(client)
    assert statuses.count(500) >= 4
    report = [line for line in lines(output) if line["event"] == "unexpected error"]
    assert len(report) >= 3
    assert all("Error" in line["exception"] for line in report)
    assert "searches were not noted" in {line["event"] for line in lines(output)}
    assert [item for item in PRIVATE if item in output.getvalue()] == []


def test_the_loggers_are_as_they_were() -> None:
    before = logging.getLogger().handlers[:]
    with logged():
        assert logging.getLogger().handlers != before
    assert logging.getLogger().handlers == before
