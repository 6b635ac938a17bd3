"""What a person gets to see at default settings, counted."""

import pytest

from toolscript_eval.dataset import DatasetQuery, EngineAnswer, Shown
from toolscript_eval.metrics import JudgedAnswer, shown_measures

pytestmark = pytest.mark.requirement("VE-001")

TWO = DatasetQuery("two", "a and b", {"a": 1, "b": 1}, (frozenset("a"), frozenset("b")))
ONE = DatasetQuery("one", "a", {"a": 1})
NONE = DatasetQuery("none", "z")


def seen(query: DatasetQuery, keys: str, *, good: bool, confidence: float = 0.9) -> JudgedAnswer:
    return JudgedAnswer(query, EngineAnswer(tuple(keys), shown=Shown(frozenset(keys), good, confidence)))


def values(*answered: JudgedAnswer) -> dict[str, float]:
    return {name: measure.value for name, measure in shown_measures(answered, 0).items()}


def test_a_right_item_that_is_shown_is_useful_and_trusted_only_with_the_verdict() -> None:
    assert values(seen(ONE, "xa", good=True)) == {
        "useful@3": 1,
        "trusted@3": 1,
        "refused_there": 0,
        "misleading": 0,
        "empty": 0,
        "contradiction": 0,
    }
    guessed = values(seen(ONE, "xa", good=False, confidence=0.3))
    assert (guessed["useful@3"], guessed["trusted@3"], guessed["refused_there"]) == (1, 0, 1)
    assert (guessed["misleading"], guessed["contradiction"]) == (0, 0)


def test_each_step_counts() -> None:
    assert values(seen(TWO, "ax", good=True))["useful@3"] == 0.5
    assert values(seen(TWO, "ax", good=True))["trusted@3"] == 1


def test_a_good_match_without_a_right_item_misleads_also_where_nothing_fits() -> None:
    measures = values(seen(ONE, "x", good=True), seen(NONE, "x", good=True), seen(NONE, "", good=False))
    assert measures["misleading"] == pytest.approx(2 / 3)
    assert measures["empty"] == pytest.approx(1 / 3)
    assert measures["useful@3"] == 0


def test_no_good_match_at_a_high_confidence_contradicts_itself() -> None:
    measures = values(seen(ONE, "a", good=False, confidence=0.5), seen(NONE, "x", good=False, confidence=0.49))
    assert measures["contradiction"] == 0.5


def test_without_answers_to_see_there_is_nothing_to_count() -> None:
    assert shown_measures([JudgedAnswer(ONE, EngineAnswer(("a",)))], 0) == {}
    assert "useful@3" not in values(seen(NONE, "x", good=False))
