"""Contract of DocumentIndex for writers."""

import pytest

from tests.contracts.builders import axis, terms
from tests.contracts.document_builders import ANN, BOB, dense, document, key, must, plain, words
from toolscript.core.retrieval.results import ChunkId, Total
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import DocumentIndex, TenantDocuments

pytestmark = pytest.mark.requirement("DOC-003", "DOC-006")


@pytest.fixture
def store(document_index: DocumentIndex) -> TenantDocuments:
    return document_index.of(ANN)


async def numbers(store: TenantDocuments, id_: str) -> list[int]:
    """Return the numbers of the stored chunks of a document."""
    stored = await store.passages([ChunkId(key(id_), number) for number in range(10)])
    return sorted(id_.number for id_ in stored)


async def test_putting_a_document_twice_stores_it_once(store: TenantDocuments) -> None:
    stored = document("a", "red", "blue", metadata={"lang": "en"})
    await store.put([stored])
    before = (await store.headers([key("a")]), await dense(store, axis(0)))
    await store.put([stored])
    assert (await store.headers([key("a")]), await dense(store, axis(0))) == before
    assert await store.count(NO_FILTERS) == Total(1)


async def test_a_newer_version_replaces_an_older_one(store: TenantDocuments) -> None:
    await store.put([document("a", "red", "blue", metadata={"lang": "en", "old": 1})])
    newer = document("a", "green", "black", "white", version=2, metadata={"lang": "de"}, replaces=2)
    await store.put([newer])
    assert await store.headers([key("a")]) == {key("a"): newer.header}
    assert await words(store, terms("red blue")) == []
    assert plain(await words(store, terms("white")), "a") == [("a", 2)]
    assert await store.count(must("old", "exists", value=True)) == Total(0)
    assert await store.count(must("lang", "eq", "de")) == Total(1)


async def test_a_document_that_became_shorter_leaves_nothing_behind(store: TenantDocuments) -> None:
    await store.put([document("a", "one", "two", "three", "four"), document("b", "one", "two")])
    await store.put([document("a", "five", version=2, replaces=4)])
    assert (await numbers(store, "a"), await numbers(store, "b")) == ([0], [0, 1])
    assert (await store.headers([key("a")]))[key("a")].passages == 1
    assert await words(store, terms("three four")) == []


async def test_an_older_version_never_replaces_a_newer(store: TenantDocuments) -> None:
    newer = document("a", "red", "blue", version=5, metadata={"lang": "en"})
    await store.put([newer])
    for older in (document("a", "green", version=4), document("a", "x", "y", "green", version=4, replaces=1)):
        await store.put([older])
        assert await store.headers([key("a")]) == {key("a"): newer.header}
        assert await numbers(store, "a") == [0, 1]
        assert plain(await words(store, terms("red blue green")), "a") == [("a", 0), ("a", 1)]
        assert await store.count(must("lang", "eq", "en")) == Total(1)


async def test_in_a_batch_only_the_outdated_document_is_skipped(store: TenantDocuments) -> None:
    await store.put([document("a", "red", version=5)])
    await store.put([document("a", "green", version=4), document("b", "blue", version=4)])
    assert sorted(plain(await words(store, terms("red green blue")), "a", "b")) == [("a", 0), ("b", 0)]
    assert await words(store, terms("green")) == []
    assert (await store.headers([key("a")]))[key("a")].version == 5


async def test_putting_nothing_does_nothing(store: TenantDocuments) -> None:
    await store.put([])
    assert await store.count(NO_FILTERS) == Total(0)


async def test_more_chunks_than_fit_in_one_request_are_all_stored(store: TenantDocuments) -> None:
    await store.put([document("a", *(f"word{index} " for index in range(600)))])
    assert (await store.headers([key("a")]))[key("a")].passages == 600
    assert len(await store.passages([ChunkId(key("a"), number) for number in range(700)])) == 600
    assert plain(await words(store, terms("word599")), "a") == [("a", 599)]


async def test_removing_deletes_all_chunks_and_returns_the_existing_keys(store: TenantDocuments) -> None:
    await store.put([document("a", "one", "two", "three"), document("b", "one")])
    assert await store.remove([key("nowhere"), key("a")]) == [key("a")]
    assert await numbers(store, "a") == []
    assert [header.id for header in await store.page("", 10, NO_FILTERS)] == ["b"]
    assert plain(await words(store, terms("one two three")), "b") == [("b", 0)]
    assert await store.remove([key("a")]) == []


async def test_a_removed_document_can_be_put_again(store: TenantDocuments) -> None:
    await store.put([document("a", version=5)])
    await store.remove([key("a")])
    await store.put([document("a", "new", version=3)])
    assert (await store.headers([key("a")]))[key("a")].version == 3


async def test_erasing_leaves_nothing_of_this_tenant_and_all_of_the_others(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    await ann.put([document(f"a{index}", "red", "blue") for index in range(5)])
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
