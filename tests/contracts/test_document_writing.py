"""What every DocumentIndex promises to whoever writes to it."""

import pytest

from tests.contracts.builders import axis, terms
from tests.contracts.document_builders import ANN, BOB, dense, document, key, must, plain, words
from toolscript.core.retrieval.results import ChunkId, Total
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import DocumentIndex, TenantDocuments

pytestmark = pytest.mark.requirement("DOC-003", "DOC-006")


@pytest.fixture
def shelf(document_index: DocumentIndex) -> TenantDocuments:
    return document_index.of(ANN)


async def numbers(shelf: TenantDocuments, id_: str) -> list[int]:
    """The passages of a document that are there, among all it might have."""
    there = await shelf.passages([ChunkId(key(id_), number) for number in range(10)])
    return sorted(found.number for found in there)


async def test_what_is_put_twice_is_there_once(shelf: TenantDocuments) -> None:
    one = document("a", "red", "blue", metadata={"lang": "en"})
    await shelf.put([one])
    before = (await shelf.headers([key("a")]), await dense(shelf, axis(0)))
    await shelf.put([one])
    assert (await shelf.headers([key("a")]), await dense(shelf, axis(0))) == before
    assert await shelf.count(NO_FILTERS) == Total(1)


async def test_a_newer_version_takes_the_place_of_an_older(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red", "blue", metadata={"lang": "en", "old": 1})])
    newer = document("a", "green", "black", "white", version=2, metadata={"lang": "de"}, replaces=2)
    await shelf.put([newer])
    assert await shelf.headers([key("a")]) == {key("a"): newer.header}
    assert await words(shelf, terms("red blue")) == []
    assert plain(await words(shelf, terms("white")), "a") == [("a", 2)]
    assert await shelf.count(must("old", "exists", value=True)) == Total(0)
    assert await shelf.count(must("lang", "eq", "de")) == Total(1)


async def test_a_document_that_became_shorter_leaves_nothing_behind(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "one", "two", "three", "four"), document("b", "one", "two")])
    await shelf.put([document("a", "five", version=2, replaces=4)])
    assert (await numbers(shelf, "a"), await numbers(shelf, "b")) == ([0], [0, 1])
    assert (await shelf.headers([key("a")]))[key("a")].passages == 1
    assert await words(shelf, terms("three four")) == []


async def test_an_older_version_never_replaces_a_newer(shelf: TenantDocuments) -> None:
    newer = document("a", "red", "blue", version=5, metadata={"lang": "en"})
    await shelf.put([newer])
    for older in (document("a", "green", version=4), document("a", "x", "y", "green", version=4, replaces=1)):
        await shelf.put([older])
        assert await shelf.headers([key("a")]) == {key("a"): newer.header}
        assert await numbers(shelf, "a") == [0, 1]
        assert plain(await words(shelf, terms("red blue green")), "a") == [("a", 0), ("a", 1)]
        assert await shelf.count(must("lang", "eq", "en")) == Total(1)


async def test_of_documents_put_together_only_the_outdated_one_is_passed_by(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red", version=5)])
    await shelf.put([document("a", "green", version=4), document("b", "blue", version=4)])
    assert sorted(plain(await words(shelf, terms("red green blue")), "a", "b")) == [("a", 0), ("b", 0)]
    assert await words(shelf, terms("green")) == []
    assert (await shelf.headers([key("a")]))[key("a")].version == 5


async def test_putting_nothing_does_nothing(shelf: TenantDocuments) -> None:
    await shelf.put([])
    assert await shelf.count(NO_FILTERS) == Total(0)


async def test_more_passages_than_one_request_takes_are_all_stored(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", *(f"word{at} " for at in range(600)))])
    assert (await shelf.headers([key("a")]))[key("a")].passages == 600
    assert len(await shelf.passages([ChunkId(key("a"), number) for number in range(700)])) == 600
    assert plain(await words(shelf, terms("word599")), "a") == [("a", 599)]


async def test_removing_takes_all_passages_and_says_what_was_there(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "one", "two", "three"), document("b", "one")])
    assert await shelf.remove([key("nowhere"), key("a")]) == [key("a")]
    assert await numbers(shelf, "a") == []
    assert [header.id for header in await shelf.page("", 10, NO_FILTERS)] == ["b"]
    assert plain(await words(shelf, terms("one two three")), "b") == [("b", 0)]
    assert await shelf.remove([key("a")]) == []


async def test_a_removed_document_can_be_put_again(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", version=5)])
    await shelf.remove([key("a")])
    await shelf.put([document("a", "new", version=3)])
    assert (await shelf.headers([key("a")]))[key("a")].version == 3


async def test_erasing_leaves_nothing_of_this_tenant_and_all_of_the_others(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    await ann.put([document(f"a{at}", "red", "blue") for at in range(5)])
    await bob.put([document("b", "red", tenant=BOB)])
    await ann.erase()
    assert (await ann.count(NO_FILTERS), await dense(ann, axis(0)), await ann.page("", 9, NO_FILTERS)) == (
        Total(0),
        [],
        [],
    )
    assert (await ann.statistics()).sample == 0
    assert plain(await dense(bob, axis(0)), "b", tenant=BOB) == [("b", 0)]
    await ann.erase()
