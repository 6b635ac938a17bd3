"""What every Index promises to whoever searches it."""

import math

import pytest

from tests.contracts.builders import axis, between, point, terms
from toolscript.core.retrieval.model import Ask, Candidate, Condition
from toolscript.core.retrieval.ports import Index

pytestmark = pytest.mark.requirement("DOC-003")


def ids(found: list[Candidate]) -> list[int]:
    return [one.id for one in found]


async def dense(index: Index, *where: Condition, limit: int = 100) -> list[Candidate]:
    return list((await index.search(Ask(vector=axis(0), where=where, limit=limit))).dense or ())


async def words(index: Index, text: str, *where: Condition, limit: int = 100) -> list[Candidate]:
    return list((await index.search(Ask(terms=terms(text), where=where, limit=limit))).words or ())


@pytest.mark.requirement("BR-009")
async def test_dense_scores_are_cosines_best_first_below_zero_too(index: Index) -> None:
    await index.put([point(1, vector=between(0, 1, 0.2)), point(2, vector=axis(0)), point(3, vector=-axis(0))])
    found = await dense(index)
    assert ids(found) == [2, 1, 3]
    assert [one.score for one in found] == pytest.approx([1.0, 0.2, -1.0], abs=1e-3)


async def test_word_scores_are_the_sum_over_shared_words_of_their_rarity(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read mail"), point(3, words="send mail")])
    found = await words(index, "read file")
    of_two, of_one = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    assert ids(found) == [1, 2]
    assert [one.score for one in found] == pytest.approx([of_two + of_one, of_two], abs=1e-3)


async def test_word_scores_weigh_both_the_asked_and_the_stored_term(index: Index) -> None:
    heavy = point(1, words="read")
    await index.put([heavy])
    term = next(iter(heavy.terms))
    found = (await index.search(Ask(terms={term: 0.5}))).words or ()
    assert found[0].score == pytest.approx(0.5 * math.log(1 + 0.5 / 1.5), abs=1e-3)


async def test_a_filter_does_not_change_how_rare_a_word_is(index: Index) -> None:
    await index.put([point(1, words="read", type="prompt"), point(2, words="read"), point(3, words="send")])
    everywhere = {one.id: one.score for one in await words(index, "read")}
    among_prompts = await words(index, "read", Condition("type", ("prompt",)))
    assert ids(among_prompts) == [1]
    assert among_prompts[0].score == pytest.approx(everywhere[1], abs=1e-3)


async def test_an_arm_that_is_not_asked_says_nothing(index: Index) -> None:
    await index.put([point(1, words="read")])
    assert (await index.search(Ask(vector=axis(0)))).words is None
    assert (await index.search(Ask(terms=terms("read")))).dense is None
    neither = await index.search(Ask())
    assert (neither.dense, neither.words) == (None, None)


async def test_an_arm_asked_for_no_words_answers_that_it_knows_nothing(index: Index) -> None:
    await index.put([point(1, words="read")])
    answer = await index.search(Ask(vector=axis(0), terms={}))
    assert answer.words == []
    assert ids(list(answer.dense or ())) == [1]


async def test_words_that_nothing_has_find_nothing(index: Index) -> None:
    await index.put([point(1, words="read"), point(2)])
    assert await words(index, "unheard") == []


async def test_an_empty_index_answers_with_empty_arms(index: Index) -> None:
    answer = await index.search(Ask(vector=axis(0), terms=terms("read")))
    assert (answer.dense, answer.words) == ([], [])


async def test_each_arm_gives_at_most_the_limit(index: Index) -> None:
    await index.put([point(number, words="read", vector=between(0, 1, number / 10)) for number in range(1, 8)])
    answer = await index.search(Ask(vector=axis(0), terms=terms("read"), limit=3))
    assert ids(list(answer.dense or ())) == [7, 6, 5]
    assert len(answer.words or ()) == 3


async def test_points_that_are_alike_have_equal_scores_and_all_are_found(index: Index) -> None:
    await index.put([point(number, words="read") for number in (3, 1, 2)])
    answer = await index.search(Ask(vector=axis(0), terms=terms("read")))
    for arm in (answer.dense or (), answer.words or ()):
        assert {one.id for one in arm} == {1, 2, 3}
        assert len({round(one.score, 5) for one in arm}) == 1


@pytest.mark.requirement("BR-005")
async def test_a_filter_by_kind_keeps_that_kind(index: Index) -> None:
    await index.put([point(1, type="tool"), point(2, type="prompt"), point(3, type="resource")])
    assert ids(await dense(index, Condition("type", ("prompt",)))) == [2]
    assert set(ids(await dense(index, Condition("type", ("prompt", "tool"))))) == {1, 2}


@pytest.mark.requirement("BR-003")
async def test_a_filter_by_activity_leaves_the_inactive_out_of_both_arms(index: Index) -> None:
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
    found = (await index.fields([1, 2]))[1]
    assert {name: found[name] for name in fields} == fields
    assert (found["is_active"], found["type"]) == (True, "tool")
    assert found.get("absent") is None
    assert (await index.fields([2])) == {}


async def test_only_the_fields_that_were_asked_for_come_back(index: Index) -> None:
    await index.put([point(1, name="read", server="files", stems="x"), point(2, name="send")])
    found = await index.fields([1, 2, 3], ["name", "server", "absent"])
    assert {id_: dict(fields) for id_, fields in found.items()} == {
        1: {"name": "read", "server": "files"},
        2: {"name": "send"},
    }


async def test_an_answer_tells_which_share_of_the_points_has_each_term(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read"), point(3, words="send"), point(4)])
    found = await index.search(Ask(vector=axis(0), terms=terms("read send unheard")))
    assert found.points == 4
    read, send, unheard = terms("read send unheard")
    assert [found.shares.get(term, 0.0) for term in (read, send, unheard)] == pytest.approx([0.5, 0.25, 0.0])
    assert found.idf(unheard) > found.idf(send) > found.idf(read) > 0
    assert set(found.shares) <= {read, send, unheard}


async def test_a_filter_does_not_change_the_shares(index: Index) -> None:
    await index.put([point(1, words="read", type="prompt"), point(2, words="read"), point(3), point(4)])
    found = await index.search(Ask(terms=terms("read"), where=(Condition("type", ("prompt",)),)))
    assert (found.points, list(found.shares.values())) == (4, [0.5])


async def test_where_no_terms_are_asked_for_no_shares_are_told(index: Index) -> None:
    await index.put([point(1, words="read")])
    for ask in (Ask(vector=axis(0)), Ask(vector=axis(0), terms={})):
        assert (await index.search(ask)).shares == {}


async def test_a_rarer_word_says_more_and_one_that_nobody_has_the_most(index: Index) -> None:
    await index.put([point(1, words="read file"), point(2, words="read mail"), point(3, words="read")])
    read, mail, nobody = (next(iter(terms(word))) for word in ("read", "mail", "unheard"))
    idfs = await index.idfs([read, mail, nobody])
    assert idfs[read] < idfs[mail] < idfs[nobody]
    assert idfs[mail] == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert await index.idfs([]) == {}
