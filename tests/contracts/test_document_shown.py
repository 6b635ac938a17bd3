"""What is shown of hits comes in one go, and of one tenant alone."""

import pytest

from tests.contracts.builders import axis
from tests.contracts.document_builders import ANN, BOB, document, key
from toolscript.core.retrieval.results import ChunkId
from toolscript.documents.ports import DocumentIndex

pytestmark = pytest.mark.requirement("DOC-003", "DOC-004")


async def test_passages_come_with_the_headers_of_their_documents(document_index: DocumentIndex) -> None:
    shelf = document_index.of(ANN)
    await shelf.put([document("a", "one", "two", "three"), document("b", "four"), document("c", "five")])
    ids = [ChunkId(key("a"), 2), ChunkId(key("b"), 0)]
    shown = await shelf.shown(ids)
    assert {header.id for header in shown.headers.values()} == {"a", "b"}
    assert shown.headers == await shelf.headers([key("a"), key("b")])
    assert shown.passages == await shelf.passages(ids)
    assert [shown.passages[id_].text for id_ in ids] == ["three", "four"]


async def test_what_is_not_there_is_left_out_and_a_passage_can_be_gone_from_a_document_that_stays(
    document_index: DocumentIndex,
) -> None:
    shelf = document_index.of(ANN)
    await shelf.put([document("a", "one")])
    gone = [ChunkId(key("a"), 5), ChunkId(key("never"), 0)]
    shown = await shelf.shown(gone)
    assert (list(shown.headers), dict(shown.passages)) == ([key("a")], {})
    assert await shelf.shown([]) == ({}, {})


async def test_what_is_another_tenants_is_not_there(document_index: DocumentIndex) -> None:
    await document_index.of(ANN).put([document("a", "one")])
    assert await document_index.of(BOB).shown([ChunkId(key("a"), 0)]) == ({}, {})


async def test_vectors_are_of_the_passages_that_are_there_and_of_no_other_tenant(
    document_index: DocumentIndex,
) -> None:
    shelf = document_index.of(ANN)
    await shelf.put([document("a", "one", "two", vectors=[axis(1), axis(2)])])
    ids = [ChunkId(key("a"), number) for number in range(3)]
    found = await shelf.vectors(ids)
    assert {id_: vector.tolist() for id_, vector in found.items()} == {
        ids[0]: axis(1).tolist(),
        ids[1]: axis(2).tolist(),
    }
    assert await document_index.of(BOB).vectors(ids) == {}
