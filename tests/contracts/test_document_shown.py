"""Hits are hydrated in one request, for one tenant only."""

import asyncio

import pytest

from tests.contracts.builders import axis, terms
from tests.contracts.document_builders import ANN, BOB, document, key
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.model.points import ChunkQuery
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


async def test_a_search_brings_along_what_is_shown_of_the_chunks_that_it_found(
    document_index: DocumentIndex,
) -> None:
    store = document_index.of(ANN)
    await store.put([document("a", "one", "two", "three"), document("b", "four"), document("c", "five")])
    await document_index.of(BOB).put([document("d", "six")])
    found = await store.search(ChunkQuery(axis(0), with_content=True))
    ids = [ChunkId(key("a"), 2), ChunkId(key("b"), 0)]
    assert found.content(ids) == await store.shown(ids)
    assert found.content([ChunkId(key("a"), 2), ChunkId(key("d"), 0)]) is None
    assert (await store.search(ChunkQuery(axis(0)))).content(ids) is None
    assert (await store.search(ChunkQuery(terms=terms("one"), with_content=True))).content(ids) is None


async def test_a_search_that_did_not_find_the_head_of_a_document_has_not_brought_it_along(
    document_index: DocumentIndex,
) -> None:
    store = document_index.of(ANN)
    await store.put([document("a", "one", "two", vectors=[axis(1), axis(0)])])
    found = await store.search(ChunkQuery(axis(0), limit=1, with_content=True))
    assert [chunk.id for chunk in found.dense or ()] == [ChunkId(key("a"), 1)]
    assert found.content([ChunkId(key("a"), 1)]) is None


async def test_what_was_removed_while_a_search_ran_has_not_been_brought_along(
    document_index: DocumentIndex,
) -> None:
    """An engine reads payloads after it has searched, and what is removed in between has none."""
    store = document_index.of(ANN)
    documents = [document(f"d{number}", "one") for number in range(20)]

    async def write() -> None:
        for _ in range(15):
            await store.put(documents)
            await store.remove([key(f"d{number}") for number in range(20)])

    async def search() -> None:
        found = await store.search(ChunkQuery(axis(0), with_content=True))
        chunks = [chunk.id for chunk in found.dense or ()]
        content = found.content(chunks)
        assert content is None or content.passages.keys() == set(chunks)

    writing = asyncio.ensure_future(write())
    while not writing.done():
        await asyncio.gather(*(search() for _ in range(4)))
        await asyncio.sleep(0)
    await writing
