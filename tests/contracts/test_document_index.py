"""Contract of DocumentIndex for readers, and isolation of tenants."""

import math

import pytest

from tests.contracts.builders import axis, between, terms
from tests.contracts.document_builders import ANN, BOB, CARD, dense, document, key, must, plain, words
from tests.contracts.paging import stays_whole
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.results import ChunkId, Exactness, Total
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.documents.model.points import ChunkQuery
from toolscript.documents.ports import DocumentIndex, TenantDocuments

pytestmark = pytest.mark.requirement("DOC-003")


@pytest.fixture
def store(document_index: DocumentIndex) -> TenantDocuments:
    return document_index.of(ANN)


async def test_an_index_is_ready_and_has_its_card(document_index: DocumentIndex) -> None:
    await document_index.ready()
    assert document_index.card == CARD
    assert document_index.of(ANN).tenant == ANN


@pytest.mark.states("S2-061")
async def test_dense_scores_are_cosines_of_chunks_best_first_below_zero_too(store: TenantDocuments) -> None:
    await store.put(
        [
            document("a", "one", "two", vectors=[between(0, 1, 0.2), axis(0) * 3]),
            document("b", vectors=[-axis(0)]),
        ]
    )
    result = await dense(store, axis(0) * 2)
    assert plain(result, "a", "b") == [("a", 1), ("a", 0), ("b", 0)]
    assert [chunk.score for chunk in result] == pytest.approx([1.0, 0.2, -1.0], abs=1e-3)


async def test_sparse_scores_sum_the_products_of_weights_over_shared_terms(store: TenantDocuments) -> None:
    await store.put([document("a", "red fox"), document("b", "red dog", "blue dog"), document("c", "green cat")])
    request = {term: weight for word, weight in (("red", 2.0), ("dog", 0.5)) for term in terms(word)}
    result = await words(store, request)
    assert plain(result, "a", "b") == [("b", 0), ("a", 0), ("b", 1)]
    assert [chunk.score for chunk in result] == pytest.approx([2.5, 2.0, 0.5], abs=1e-5)


async def test_the_index_does_not_apply_idf_by_itself(store: TenantDocuments) -> None:
    await store.put([document("a", "red"), *(document(f"b{index}", "blue") for index in range(9))])
    (rare,) = await words(store, terms("red"))
    common = await words(store, terms("blue"))
    assert {chunk.score for chunk in (rare, *common)} == {1.0}


async def test_one_query_runs_both_retrievers_and_an_unused_one_returns_none(store: TenantDocuments) -> None:
    await store.put([document("a", "red")])
    both = await store.search(ChunkQuery(vector=axis(0), terms=terms("red")))
    assert plain(both.dense or (), "a") == plain(both.words or (), "a") == [("a", 0)]
    assert (await store.search(ChunkQuery(vector=axis(0)))).words is None
    assert (await store.search(ChunkQuery(terms=terms("red")))).dense is None
    neither = await store.search(ChunkQuery())
    assert (neither.dense, neither.words) == (None, None)


async def test_sparse_retrieval_without_terms_returns_an_empty_list(store: TenantDocuments) -> None:
    await store.put([document("a", "red")])
    answer = await store.search(ChunkQuery(vector=axis(0), terms={}))
    assert answer.words == []
    assert plain(answer.dense or (), "a") == [("a", 0)]


async def test_a_chunk_without_terms_is_found_by_its_vector_alone(store: TenantDocuments) -> None:
    await store.put([document("a", "?!"), document("b", "red")])
    assert sorted(plain(await dense(store, axis(0)), "a", "b")) == [("a", 0), ("b", 0)]
    assert plain(await words(store, terms("red")), "b") == [("b", 0)]
    assert await words(store, terms("unheard")) == []


async def test_a_limit_keeps_the_best(store: TenantDocuments) -> None:
    await store.put(
        [document(f"d{index}", "red " * index, vectors=[between(0, 1, index / 10)]) for index in range(1, 9)]
    )
    result = await dense(store, axis(0), limit=3)
    assert plain(result, *(f"d{index}" for index in range(9))) == [("d8", 0), ("d7", 0), ("d6", 0)]
    assert len(await words(store, terms("red"), limit=3)) == 3


async def test_chunks_of_equal_score_are_ordered_by_id(store: TenantDocuments) -> None:
    await store.put([document(f"d{index}", "red", "red") for index in range(20)])
    ids = sorted(ChunkId(key(f"d{index}"), number) for index in range(20) for number in (0, 1))
    assert [chunk.id for chunk in await dense(store, axis(0))] == ids
    assert [chunk.id for chunk in await words(store, terms("red"))] == ids


async def test_an_exact_search_of_few_chunks_finds_the_same(store: TenantDocuments) -> None:
    await store.put([document(f"d{index}", vectors=[between(0, 1, index / 10)]) for index in range(9)])
    ask = ChunkQuery(vector=axis(0), terms=terms("text"))
    exact = await store.search(ChunkQuery(vector=axis(0), terms=terms("text"), exact=True))
    assert (await store.search(ask)).dense == exact.dense


@pytest.mark.states("S2-062")
@pytest.mark.requirement("DOC-002")
async def test_both_retrievers_apply_filters(store: TenantDocuments) -> None:
    await store.put(
        [
            document("a", "red", metadata={"lang": "en", "year": 2020}),
            document("b", "red", metadata={"lang": "de", "year": 2021, "tags": ["x", "y"]}),
            document("c", "red"),
        ]
    )
    for filters, expected in (
        (must("lang", "eq", "de"), ["b"]),
        (must("year", "lt", 2021), ["a"]),
        (must("tags", "contains", "y"), ["b"]),
        (must("lang", "exists", value=False), ["c"]),
        (Filters(must_not=(FieldCondition.of("lang", "in", ["de", "fr"]),)), ["a", "c"]),
        (must("lang", "eq", "fr"), []),
    ):
        result = [await dense(store, axis(0), filters=filters), await words(store, terms("red"), filters=filters)]
        assert [sorted(id_ for id_, _ in plain(item, "a", "b", "c")) for item in result] == [expected, expected]


@pytest.mark.requirement("DOC-002")
async def test_filters_match_every_chunk_of_a_document_or_none(store: TenantDocuments) -> None:
    await store.put([document("a", "one", "two", metadata={"lang": "en"}), document("b", "one", "two")])
    result = await dense(store, axis(0), filters=must("lang", "eq", "en"))
    assert sorted(plain(result, "a", "b")) == [("a", 0), ("a", 1)]


async def test_an_empty_index_finds_nothing(store: TenantDocuments) -> None:
    answer = await store.search(ChunkQuery(vector=axis(0), terms=terms("red")))
    assert (answer.dense, answer.words) == ([], [])
    assert await store.page("", 10, NO_FILTERS) == []
    assert await store.count(NO_FILTERS) == Total(0)
    assert (await store.headers([key("a")]), await store.passages([ChunkId(key("a"), 0)])) == ({}, {})


async def test_statistics_count_the_chunks_that_have_a_term(store: TenantDocuments) -> None:
    await store.put([document("a", "red fox", "red dog"), document("b", "red red cat", "?!")])
    statistics = await store.statistics()
    (red,), (fox,), (unheard,) = terms("red"), terms("fox"), terms("unheard")
    assert statistics.sample == 4
    assert [statistics.count(term) for term in (red, fox, unheard)] == [3, 1, 1]
    assert statistics.idf(red) == pytest.approx(math.log(1 + 1.5 / 3.5))


async def test_statistics_of_an_empty_tenant_are_empty(store: TenantDocuments) -> None:
    statistics = await store.statistics()
    assert (statistics.sample, statistics.terms.tolist(), statistics.counts.tolist()) == (0, [], [])


async def test_headers_and_chunks_are_returned_as_they_were_put(store: TenantDocuments) -> None:
    metadata: JsonObject = {
        "title": "É \u202e",
        "n": [0.1 + 0.2, 2**60, -0.0, None, {"a.b": [[]]}],
        "": {"deep": True},
    }
    stored = document("a", "first. ", "second 日本", metadata=metadata)
    await store.put([stored])
    assert await store.headers([key("a"), key("b")]) == {key("a"): stored.header}
    ids = [ChunkId(key("a"), number) for number in (1, 0, 2)]
    expected = {ChunkId(key("a"), chunk.passage.number): chunk.passage for chunk in stored.passages}
    assert await store.passages(ids) == expected


async def test_pages_follow_the_order_of_keys_to_the_end(store: TenantDocuments) -> None:
    ids = [f"d{index}" for index in range(7)]
    await store.put([document(id_, "one", "two") for id_ in ids])
    pages, after = [], ""
    while page := await store.page(after, 3, NO_FILTERS):
        pages.append([header.key for header in page])
        after = page[-1].key
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [item for page in pages for item in page] == sorted(key(id_) for id_ in ids)


async def test_a_page_may_start_after_the_key_of_a_removed_document(store: TenantDocuments) -> None:
    await store.put([document(f"d{index}") for index in range(5)])
    first, second, *_ = await store.page("", 5, NO_FILTERS)
    await store.remove([first.key])
    assert (await store.page(first.key, 1, NO_FILTERS)) == [second]
    assert await store.page("f" * 24, 5, NO_FILTERS) == []


@pytest.mark.requirement("DOC-002")
async def test_pages_and_counts_apply_filters(store: TenantDocuments) -> None:
    await store.put([document(f"d{index}", "one", "two", metadata={"at": index}) for index in range(8)])
    late = must("at", "gte", 5)
    listed = [header.id for header in await store.page("", 2, late)]
    listed += [header.id for header in await store.page(key(listed[-1]), 2, late)]
    assert sorted(listed) == ["d5", "d6", "d7"]
    assert await store.count(late) == Total(3, Exactness.EXACT)
    assert await store.count(NO_FILTERS) == Total(8, Exactness.EXACT)


@pytest.mark.requirement("DOC-004")
async def test_the_same_id_is_another_document_for_another_tenant(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    await ann.put([document("a", "red", metadata={"of": "ann"})])
    await bob.put([document("a", "blue", tenant=BOB, metadata={"of": "bob"})])
    assert (await ann.headers([key("a")]))[key("a")].metadata == {"of": "ann"}
    assert (await bob.headers([key("a", BOB)]))[key("a", BOB)].metadata == {"of": "bob"}


@pytest.mark.requirement("DOC-004")
async def test_keys_of_another_tenant_give_nothing_and_take_nothing(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    theirs = key("b", BOB)
    await ann.put([document("a")])
    await bob.put([document("b", "red", "blue", tenant=BOB)])
    assert await ann.headers([theirs, key("a")]) == await ann.headers([key("a")])
    assert await ann.passages([ChunkId(theirs, 0), ChunkId(theirs, 1)]) == {}
    assert await ann.remove([theirs]) == []
    assert [header.id for header in await ann.page("", 10, NO_FILTERS)] == ["a"]
    assert (await bob.headers([theirs]))[theirs].passages == 2


@pytest.mark.requirement("DOC-004")
async def test_writes_of_one_tenant_do_not_affect_another(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    await ann.put([document("a", "red fox", "blue fox", metadata={"lang": "en"}), document("b", "red")])
    before = await _everything(ann)
    theirs = [
        document(f"b{index}", "red fox", "red", tenant=BOB, metadata={"lang": "en"}, version=9)
        for index in range(20)
    ]
    await bob.put(theirs)
    assert await _everything(ann) == before
    await bob.remove([key("b0", BOB)])
    await bob.erase()
    assert await _everything(ann) == before
    assert await bob.count(NO_FILTERS) == Total(0)


async def _everything(store: TenantDocuments) -> tuple[object, ...]:
    english = must("lang", "eq", "en")
    statistics = await store.statistics()
    return (
        await store.search(ChunkQuery(vector=between(0, 1, 0.6), terms=terms("red fox"))),
        await store.search(ChunkQuery(vector=axis(0), terms=terms("red"), filters=english, limit=1)),
        (statistics.sample, statistics.terms.tolist(), statistics.counts.tolist()),
        await store.headers([key("a"), key("b")]),
        await store.passages([ChunkId(key("a"), 1)]),
        await store.page("", 10, NO_FILTERS),
        await store.count(english),
    )


@pytest.mark.requirement("AP-001")
async def test_documents_that_vanish_and_appear_between_pages_hide_no_other(store: TenantDocuments) -> None:
    await store.put([document(f"d{index}", "one", "two") for index in range(9)])

    async def keys(after: str, limit: int) -> list[str]:
        return [header.key for header in await store.page(after, limit, NO_FILTERS)]

    await stays_whole(
        keys,
        "",
        vanish=lambda gone: store.remove([gone]),
        appear=lambda: store.put([document(f"new{index}", version=2) for index in range(6)]),
    )
