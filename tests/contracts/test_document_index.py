"""What every DocumentIndex promises to whoever reads it, and that tenants do not see each other in it."""

import math

import pytest

from tests.contracts.builders import axis, between, terms
from tests.contracts.document_builders import ANN, BOB, CARD, dense, document, key, must, plain, words
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.results import ChunkId, Exactness, Total
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters
from toolscript.documents.model.points import ChunkQuery
from toolscript.documents.ports import DocumentIndex, TenantDocuments

pytestmark = pytest.mark.requirement("DOC-003")


@pytest.fixture
def shelf(document_index: DocumentIndex) -> TenantDocuments:
    return document_index.of(ANN)


async def test_an_index_is_ready_and_says_what_it_was_made_with(document_index: DocumentIndex) -> None:
    await document_index.ready()
    assert document_index.card == CARD
    assert document_index.of(ANN).tenant == ANN


@pytest.mark.states("S2-061")
async def test_dense_scores_are_cosines_of_passages_best_first_below_zero_too(shelf: TenantDocuments) -> None:
    await shelf.put(
        [
            document("a", "one", "two", vectors=[between(0, 1, 0.2), axis(0) * 3]),
            document("b", vectors=[-axis(0)]),
        ]
    )
    found = await dense(shelf, axis(0) * 2)
    assert plain(found, "a", "b") == [("a", 1), ("a", 0), ("b", 0)]
    assert [one.score for one in found] == pytest.approx([1.0, 0.2, -1.0], abs=1e-3)


async def test_word_scores_are_the_sum_over_shared_words_of_both_weights(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red fox"), document("b", "red dog", "blue dog"), document("c", "green cat")])
    asked = {term: weight for word, weight in (("red", 2.0), ("dog", 0.5)) for term in terms(word)}
    found = await words(shelf, asked)
    assert plain(found, "a", "b") == [("b", 0), ("a", 0), ("b", 1)]
    assert [one.score for one in found] == pytest.approx([2.5, 2.0, 0.5], abs=1e-5)


async def test_how_rare_a_word_is_does_not_count_by_itself(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red"), *(document(f"b{at}", "blue") for at in range(9))])
    (rare,) = await words(shelf, terms("red"))
    common = await words(shelf, terms("blue"))
    assert {one.score for one in (rare, *common)} == {1.0}


async def test_both_arms_can_be_asked_at_once_and_one_that_is_not_says_nothing(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red")])
    both = await shelf.search(ChunkQuery(vector=axis(0), terms=terms("red")))
    assert plain(both.dense or (), "a") == plain(both.words or (), "a") == [("a", 0)]
    assert (await shelf.search(ChunkQuery(vector=axis(0)))).words is None
    assert (await shelf.search(ChunkQuery(terms=terms("red")))).dense is None
    neither = await shelf.search(ChunkQuery())
    assert (neither.dense, neither.words) == (None, None)


async def test_an_arm_asked_for_no_words_answers_that_it_knows_nothing(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red")])
    answer = await shelf.search(ChunkQuery(vector=axis(0), terms={}))
    assert answer.words == []
    assert plain(answer.dense or (), "a") == [("a", 0)]


async def test_a_passage_without_words_is_found_by_its_vector_alone(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "?!"), document("b", "red")])
    assert sorted(plain(await dense(shelf, axis(0)), "a", "b")) == [("a", 0), ("b", 0)]
    assert plain(await words(shelf, terms("red")), "b") == [("b", 0)]
    assert await words(shelf, terms("unheard")) == []


async def test_a_limit_keeps_the_best(shelf: TenantDocuments) -> None:
    await shelf.put([document(f"d{at}", "red " * at, vectors=[between(0, 1, at / 10)]) for at in range(1, 9)])
    found = await dense(shelf, axis(0), limit=3)
    assert plain(found, *(f"d{at}" for at in range(9))) == [("d8", 0), ("d7", 0), ("d6", 0)]
    assert len(await words(shelf, terms("red"), limit=3)) == 3


async def test_passages_of_one_score_come_in_the_order_of_their_ids(shelf: TenantDocuments) -> None:
    await shelf.put([document(f"d{at}", "red", "red") for at in range(20)])
    ids = sorted(ChunkId(key(f"d{at}"), number) for at in range(20) for number in (0, 1))
    assert [one.id for one in await dense(shelf, axis(0))] == ids
    assert [one.id for one in await words(shelf, terms("red"))] == ids


async def test_an_exact_search_finds_what_a_search_of_few_passages_finds(shelf: TenantDocuments) -> None:
    await shelf.put([document(f"d{at}", vectors=[between(0, 1, at / 10)]) for at in range(9)])
    ask = ChunkQuery(vector=axis(0), terms=terms("text"))
    exact = await shelf.search(ChunkQuery(vector=axis(0), terms=terms("text"), exact=True))
    assert (await shelf.search(ask)).dense == exact.dense


@pytest.mark.states("S2-062")
@pytest.mark.requirement("DOC-002")
async def test_both_arms_find_only_what_passes_filters(shelf: TenantDocuments) -> None:
    await shelf.put(
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
        found = [await dense(shelf, axis(0), filters=filters), await words(shelf, terms("red"), filters=filters)]
        assert [sorted(id_ for id_, _ in plain(one, "a", "b", "c")) for one in found] == [expected, expected]


@pytest.mark.requirement("DOC-002")
async def test_every_passage_of_a_document_passes_or_none(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "one", "two", metadata={"lang": "en"}), document("b", "one", "two")])
    found = await dense(shelf, axis(0), filters=must("lang", "eq", "en"))
    assert sorted(plain(found, "a", "b")) == [("a", 0), ("a", 1)]


async def test_an_empty_index_finds_nothing(shelf: TenantDocuments) -> None:
    answer = await shelf.search(ChunkQuery(vector=axis(0), terms=terms("red")))
    assert (answer.dense, answer.words) == ([], [])
    assert await shelf.page("", 10, NO_FILTERS) == []
    assert await shelf.count(NO_FILTERS) == Total(0)
    assert (await shelf.headers([key("a")]), await shelf.passages([ChunkId(key("a"), 0)])) == ({}, {})


async def test_statistics_count_the_passages_that_have_a_word(shelf: TenantDocuments) -> None:
    await shelf.put([document("a", "red fox", "red dog"), document("b", "red red cat", "?!")])
    statistics = await shelf.statistics()
    (red,), (fox,), (unheard,) = terms("red"), terms("fox"), terms("unheard")
    assert statistics.sample == 4
    assert [statistics.count(term) for term in (red, fox, unheard)] == [3, 1, 1]
    assert statistics.idf(red) == pytest.approx(math.log(1 + 1.5 / 3.5))


async def test_statistics_of_nothing_are_of_nothing(shelf: TenantDocuments) -> None:
    statistics = await shelf.statistics()
    assert (statistics.sample, statistics.terms.tolist(), statistics.counts.tolist()) == (0, [], [])


async def test_headers_and_passages_are_given_as_they_were_put(shelf: TenantDocuments) -> None:
    metadata: JsonObject = {
        "title": "É \u202e",
        "n": [0.1 + 0.2, 2**60, -0.0, None, {"a.b": [[]]}],
        "": {"deep": True},
    }
    given = document("a", "first. ", "second 日本", metadata=metadata)
    await shelf.put([given])
    assert await shelf.headers([key("a"), key("b")]) == {key("a"): given.header}
    ids = [ChunkId(key("a"), number) for number in (1, 0, 2)]
    expected = {ChunkId(key("a"), one.passage.number): one.passage for one in given.passages}
    assert await shelf.passages(ids) == expected


async def test_pages_follow_the_order_of_keys_to_the_end(shelf: TenantDocuments) -> None:
    ids = [f"d{at}" for at in range(7)]
    await shelf.put([document(id_, "one", "two") for id_ in ids])
    pages, after = [], ""
    while page := await shelf.page(after, 3, NO_FILTERS):
        pages.append([header.key for header in page])
        after = page[-1].key
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [one for page in pages for one in page] == sorted(key(id_) for id_ in ids)


async def test_a_page_starts_after_a_key_that_is_no_document_too(shelf: TenantDocuments) -> None:
    await shelf.put([document(f"d{at}") for at in range(5)])
    first, second, *_ = await shelf.page("", 5, NO_FILTERS)
    await shelf.remove([first.key])
    assert (await shelf.page(first.key, 1, NO_FILTERS)) == [second]
    assert await shelf.page("f" * 24, 5, NO_FILTERS) == []


@pytest.mark.requirement("DOC-002")
async def test_pages_and_counts_are_of_the_documents_that_pass(shelf: TenantDocuments) -> None:
    await shelf.put([document(f"d{at}", "one", "two", metadata={"at": at}) for at in range(8)])
    late = must("at", "gte", 5)
    listed = [header.id for header in await shelf.page("", 2, late)]
    listed += [header.id for header in await shelf.page(key(listed[-1]), 2, late)]
    assert sorted(listed) == ["d5", "d6", "d7"]
    assert await shelf.count(late) == Total(3, Exactness.EXACT)
    assert await shelf.count(NO_FILTERS) == Total(8, Exactness.EXACT)


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
async def test_nothing_of_a_tenant_changes_by_what_another_does(document_index: DocumentIndex) -> None:
    ann, bob = document_index.of(ANN), document_index.of(BOB)
    await ann.put([document("a", "red fox", "blue fox", metadata={"lang": "en"}), document("b", "red")])
    before = await _everything(ann)
    theirs = [
        document(f"b{at}", "red fox", "red", tenant=BOB, metadata={"lang": "en"}, version=9) for at in range(20)
    ]
    await bob.put(theirs)
    assert await _everything(ann) == before
    await bob.remove([key("b0", BOB)])
    await bob.erase()
    assert await _everything(ann) == before
    assert await bob.count(NO_FILTERS) == Total(0)


async def _everything(shelf: TenantDocuments) -> tuple[object, ...]:
    english = must("lang", "eq", "en")
    statistics = await shelf.statistics()
    return (
        await shelf.search(ChunkQuery(vector=between(0, 1, 0.6), terms=terms("red fox"))),
        await shelf.search(ChunkQuery(vector=axis(0), terms=terms("red"), filters=english, limit=1)),
        (statistics.sample, statistics.terms.tolist(), statistics.counts.tolist()),
        await shelf.headers([key("a"), key("b")]),
        await shelf.passages([ChunkId(key("a"), 1)]),
        await shelf.page("", 10, NO_FILTERS),
        await shelf.count(english),
    )
