"""Hits are hydrated in one request, for one tenant only."""

import pytest

from tests.contracts.builders import axis
from tests.contracts.document_builders import ANN, BOB, document, key
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.ports import DocumentIndex

pytestmark = pytest.mark.requirement("DOC-003", "DOC-004")


async def test_chunks_come_with_the_headers_of_their_documents(document_index: DocumentIndex) -> None:
    store = document_index.of(ANN)
    await store.put([document("a", "one", "two", "three"), document("b", "four"), document("c", "five")])
    ids = [ChunkId(key("a"), 2), ChunkId(key("b"), 0)]
    output = await store.shown(ids)
    assert {header.id for header in output.headers.values()} == {"a", "b"}
    assert output.headers == await store.headers([key("a"), key("b")])
    assert output.passages == await store.passages(ids)
    assert [output.passages[id_].text for id_ in ids] == ["three", "four"]


async def test_missing_documents_and_chunks_are_left_out(
    document_index: DocumentIndex,
) -> None:
    store = document_index.of(ANN)
    await store.put([document("a", "one")])
    gone = [ChunkId(key("a"), 5), ChunkId(key("never"), 0)]
    output = await store.shown(gone)
    assert (list(output.headers), dict(output.passages)) == ([key("a")], {})
    assert await store.shown([]) == ({}, {})


async def test_chunks_of_another_tenant_are_not_returned(document_index: DocumentIndex) -> None:
    await document_index.of(ANN).put([document("a", "one")])
    assert await document_index.of(BOB).shown([ChunkId(key("a"), 0)]) == ({}, {})


async def test_vectors_are_returned_for_existing_chunks_of_the_tenant_only(
    document_index: DocumentIndex,
) -> None:
    store = document_index.of(ANN)
    await store.put([document("a", "one", "two", vectors=[axis(1), axis(2)])])
    ids = [ChunkId(key("a"), number) for number in range(3)]
    result = await store.vectors(ids)
    assert {id_: vector.tolist() for id_, vector in result.items()} == {
        ids[0]: axis(1).tolist(),
        ids[1]: axis(2).tolist(),
    }
    assert await document_index.of(BOB).vectors(ids) == {}
