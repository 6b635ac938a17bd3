"""Contract of Index for searches."""

import math

import pytest

from tests.contracts.builders import axis, between, point, terms
from toolscript.core.retrieval.model import Candidate, Condition, IndexQuery
from toolscript.core.retrieval.ports import Index

pytestmark = pytest.mark.requirement("DOC-003")


def ids(found: list[Candidate]) -> list[int]:
    return [item.id for item in found]


async def dense(index: Index, *where: Condition, limit: int = 100) -> list[Candidate]:
    return list((await index.search(IndexQuery(vector=axis(0), where=where, limit=limit))).dense or ())


async def words(index: Index, text: str, *where: Condition, limit: int = 100) -> list[Candidate]:
    return list((await index.search(IndexQuery(terms=terms(text), where=where, limit=limit))).words or ())


@pytest.mark.requirement("BR-009")
async def test_dense_scores_are_cosines_best_first_below_zero_too(index: Index) -> None:
    await index.put([point(1, vector=between(0, 1, 0.2)), point(2, vector=axis(0)), point(3, vector=-axis(0))])
    result = await dense(index)
    assert ids(result) == [2, 1, 3]
    assert [item.score for item in result] == pytest.approx([1.0, 0.2, -1.0], abs=1e-3)


async def test_sparse_scores_are_the_sum_over_shared_terms_of_their_idf(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read mail"), point(3, words="send mail")])
    result = await words(index, "read file")
    of_two, of_one = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    assert ids(result) == [1, 2]
    assert [item.score for item in result] == pytest.approx([of_two + of_one, of_two], abs=1e-3)


async def test_sparse_scores_weigh_both_the_query_and_the_stored_term(index: Index) -> None:
    heavy = point(1, words="read")
    await index.put([heavy])
    term = next(iter(heavy.terms))
    result = (await index.search(IndexQuery(terms={term: 0.5}))).words or ()
    assert result[0].score == pytest.approx(0.5 * math.log(1 + 0.5 / 1.5), abs=1e-3)


async def test_a_filter_does_not_change_the_idf(index: Index) -> None:
    await index.put([point(1, words="read", type="prompt"), point(2, words="read"), point(3, words="send")])
    everywhere = {word.id: word.score for word in await words(index, "read")}
    among_prompts = await words(index, "read", Condition("type", ("prompt",)))
    assert ids(among_prompts) == [1]
    assert among_prompts[0].score == pytest.approx(everywhere[1], abs=1e-3)


async def test_an_unused_retriever_returns_none(index: Index) -> None:
    await index.put([point(1, words="read")])
    assert (await index.search(IndexQuery(vector=axis(0)))).words is None
    assert (await index.search(IndexQuery(terms=terms("read")))).dense is None
    neither = await index.search(IndexQuery())
    assert (neither.dense, neither.words) == (None, None)


async def test_a_sparse_query_without_terms_returns_an_empty_list(index: Index) -> None:
    await index.put([point(1, words="read")])
    answer = await index.search(IndexQuery(vector=axis(0), terms={}))
    assert answer.words == []
    assert ids(list(answer.dense or ())) == [1]


async def test_terms_without_matches_find_nothing(index: Index) -> None:
    await index.put([point(1, words="read"), point(2)])
    assert await words(index, "unheard") == []


async def test_an_empty_index_returns_empty_lists(index: Index) -> None:
    answer = await index.search(IndexQuery(vector=axis(0), terms=terms("read")))
    assert (answer.dense, answer.words) == ([], [])


async def test_each_retriever_returns_at_most_the_limit(index: Index) -> None:
    await index.put([point(number, words="read", vector=between(0, 1, number / 10)) for number in range(1, 8)])
    answer = await index.search(IndexQuery(vector=axis(0), terms=terms("read"), limit=3))
    assert ids(list(answer.dense or ())) == [7, 6, 5]
    assert len(answer.words or ()) == 3


async def test_points_that_are_alike_have_equal_scores_and_all_are_found(index: Index) -> None:
    await index.put([point(number, words="read") for number in (3, 1, 2)])
    answer = await index.search(IndexQuery(vector=axis(0), terms=terms("read")))
    for arm in (answer.dense or (), answer.words or ()):
        assert {item.id for item in arm} == {1, 2, 3}
        assert len({round(item.score, 5) for item in arm}) == 1


@pytest.mark.requirement("BR-005")
async def test_a_filter_by_kind_keeps_that_kind(index: Index) -> None:
    await index.put([point(1, type="tool"), point(2, type="prompt"), point(3, type="resource")])
    assert ids(await dense(index, Condition("type", ("prompt",)))) == [2]
    assert set(ids(await dense(index, Condition("type", ("prompt", "tool"))))) == {1, 2}


@pytest.mark.requirement("BR-003")
async def test_a_filter_by_activity_excludes_inactive_points_from_both_retrievers(index: Index) -> None:
    await index.put([point(1, words="read"), point(2, words="read", is_active=False)])
    active = Condition("is_active", (True,))
    assert ids(await dense(index, active)) == [1]
    assert ids(await words(index, "read", active)) == [1]
    assert ids(await dense(index, Condition("is_active", (False,)))) == [2]


async def test_a_filter_may_allow_both_truths(index: Index) -> None:
    await index.put([point(1), point(2, is_active=False)])
    assert set(ids(await dense(index, Condition("is_active", (True, False))))) == {1, 2}


@pytest.mark.requirement("BR-003")
async def test_a_filter_on_a_list_holds_when_any_value_is_in_common(index: Index) -> None:
    await index.put(
        [point(1, skill_ids=["mail", "calendar"]), point(2, skill_ids=["files"]), point(3, skill_ids=[])]
    )
    assert ids(await dense(index, Condition("skill_ids", ("calendar",)))) == [1]
    assert set(ids(await dense(index, Condition("skill_ids", ("calendar", "files", "none"))))) == {1, 2}
    assert await dense(index, Condition("skill_ids", ("none",))) == []


@pytest.mark.requirement("BR-003")
async def test_all_conditions_must_hold(index: Index) -> None:
    await index.put([point(1, skill_ids=["mail"]), point(2, skill_ids=["mail"], is_active=False), point(3)])
    both = (Condition("skill_ids", ("mail",)), Condition("is_active", (True,)))
    assert ids(await dense(index, *both)) == [1]


async def test_a_filter_on_a_whole_number_holds_when_it_is_one_of_them(index: Index) -> None:
    await index.put([point(1, db_id=10), point(2, db_id=20), point(3, db_id=30)])
    assert set(ids(await dense(index, Condition("db_id", (10, 30))))) == {1, 3}


async def test_a_field_that_nothing_has_matches_nothing(index: Index) -> None:
    await index.put([point(1, primary_skill_id=None)])
    assert await dense(index, Condition("unknown", ("x",))) == []
    assert await dense(index, Condition("primary_skill_id", ("x",))) == []


async def test_a_condition_without_values_matches_nothing(index: Index) -> None:
    await index.put([point(1)])
    assert await dense(index, Condition("type", ())) == []


async def test_fields_come_back_as_they_went_in(index: Index) -> None:
    fields = {
        "name": "Größe 日本 🙂",
        "db_id": 2**53,
        "skill_ids": ["a", "b"],
        "primary_skill_id": None,
        "empty": "",
    }
    await index.put([point(1, **fields)])  # type: ignore[arg-type]
    result = (await index.fields([1, 2]))[1]
    assert {name: result[name] for name in fields} == fields
    assert (result["is_active"], result["type"]) == (True, "tool")
    assert result.get("absent") is None
    assert (await index.fields([2])) == {}


async def test_only_the_requested_fields_are_returned(index: Index) -> None:
    await index.put([point(1, name="read", server="files", stems="x"), point(2, name="send")])
    result = await index.fields([1, 2, 3], ["name", "server", "absent"])
    assert {id_: dict(fields) for id_, fields in result.items()} == {
        1: {"name": "read", "server": "files"},
        2: {"name": "send"},
    }


async def test_an_answer_has_the_document_frequency_of_each_term(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read"), point(3, words="send"), point(4)])
    result = await index.search(IndexQuery(vector=axis(0), terms=terms("read send unheard")))
    assert result.points == 4
    read, send, unheard = terms("read send unheard")
    assert [result.shares.get(term, 0.0) for term in (read, send, unheard)] == pytest.approx([0.5, 0.25, 0.0])
    assert result.idf(unheard) > result.idf(send) > result.idf(read) > 0
    assert set(result.shares) <= {read, send, unheard}


async def test_a_filter_does_not_change_the_document_frequencies(index: Index) -> None:
    await index.put([point(1, words="read", type="prompt"), point(2, words="read"), point(3), point(4)])
    result = await index.search(IndexQuery(terms=terms("read"), where=(Condition("type", ("prompt",)),)))
    assert (result.points, list(result.shares.values())) == (4, [0.5])


async def test_without_terms_there_are_no_document_frequencies(index: Index) -> None:
    await index.put([point(1, words="read")])
    for ask in (IndexQuery(vector=axis(0)), IndexQuery(vector=axis(0), terms={})):
        assert (await index.search(ask)).shares == {}


async def test_a_rarer_term_has_a_higher_idf_and_an_unknown_one_the_highest(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read mail"), point(3, words="read")])
    read, mail, nobody = (next(iter(terms(word))) for word in ("read", "mail", "unheard"))
    idfs = await index.idfs([read, mail, nobody])
    assert idfs[read] < idfs[mail] < idfs[nobody]
    assert idfs[mail] == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert await index.idfs([]) == {}


async def test_an_empty_index_has_no_words(index: Index) -> None:
    assert not (await index.vocabulary()).words


async def test_the_vocabulary_has_the_words_of_names_servers_and_descriptions(index: Index) -> None:
    merge = point(1, words="merge pull", server="git-hub", name="mergePull", description="Merges a request.")
    await index.put([merge, point(2, words="read")])
    vocabulary = await index.vocabulary()
    assert vocabulary.words >= {"git", "hub", "merge", "pull", "merges", "request"}
    assert vocabulary.knows("merge")
    assert vocabulary.knows("read")
    assert not vocabulary.knows("melt")
