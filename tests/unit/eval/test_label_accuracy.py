"""The measures of classifications against labels, on numbers that can be checked by hand."""

import math

import pytest

from toolscript.core.items import AssignedBy, Assignment
from toolscript.core.taxonomy import Classification, SuggestedSkill
from toolscript_eval.label_accuracy import Balance, labels_report, reports_of, result_of
from toolscript_eval.labels import NONE, Label
from toolscript_eval.metrics import wilson_interval

LABELS = [
    Label("d", "1", "files", split="tune", readings=("files", "files")),
    Label("d", "2", "files", frozenset({"mail"}), "tune", ("files", "mail")),
    Label("d", "3", "mail", split="test", readings=("mail", "mail")),
    Label("d", "4", NONE, split="test", readings=(NONE, NONE)),
]


def answer(*skill_ids: str, confidence: float = 0.8, source: AssignedBy = AssignedBy.RULES) -> Classification:
    return Classification(tuple(Assignment(skill_id, confidence, source, "") for skill_id in skill_ids))


def test_acceptable_exact_and_coverage_are_shares_of_all_items() -> None:
    answers = [answer("files"), answer("mail", "files"), answer("files"), answer()]
    *_, report = reports_of("rules", LABELS, answers)
    assert (report.split, report.items) == ("all", 4)
    assert (report.acceptable.value, report.exact.value, report.coverage.value) == (0.75, 0.5, 0.75)
    assert [(mistake.item_id, mistake.best, mistake.skill) for mistake in report.mistakes] == [
        ("3", "mail", "files")
    ]


def test_each_split_is_reported_before_all() -> None:
    reports = reports_of("rules", LABELS, [answer("files"), answer("mail"), answer(), answer("mail")])
    assert [(report.split, report.items, report.acceptable.value) for report in reports] == [
        ("test", 2, 0.0),
        ("tune", 2, 1.0),
        ("all", 4, 0.5),
    ]
    assert [report.split for report in reports_of("rules", LABELS[:2], [answer(), answer()])] == ["tune"]
    assert [mistake.skill for mistake in reports[0].mistakes] == [None, "mail"]


def test_confidence_is_compared_with_how_often_the_primary_skill_is_acceptable() -> None:
    answers = [answer("files", confidence=0.9), answer("other", confidence=0.9), answer("mail", confidence=0.6)]
    (report,) = reports_of(
        "rules", [Label("d", str(n), s) for n, s in enumerate(["files", "files", "mail"])], answers
    )
    assert [(bin_.confidence, bin_.right, bin_.queries) for bin_ in report.calibration] == [
        (0.6, 1, 1),
        (0.9, 0.5, 2),
    ]
    assert report.calibration_error == pytest.approx((0.4 + 0.8) / 3)


def test_nothing_assigned_is_no_division_by_zero() -> None:
    (report,) = reports_of("rules", LABELS[:2], [answer(), answer()])
    assert (report.calibration_error, report.calibration, report.coverage.value) == (0.0, (), 0.0)
    assert report.balance == Balance("", 0.0, 0.0)


def test_balance_counts_skills_by_how_evenly_they_are_used() -> None:
    even, one = Balance.of(["a", "b", "a", "b"]), Balance.of(["a", "a", "a", None])
    assert [(even.largest_skill, even.largest_share), (one.largest_skill, one.largest_share)] == [
        ("a", 0.5),
        ("a", 0.75),
    ]
    assert [even.effective_skills, one.effective_skills] == pytest.approx([2.0, 1.0])
    uneven = Balance.of(["a", "a", "a", "b"])
    assert uneven.effective_skills == pytest.approx(math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25))))


def test_items_that_the_rules_classified_in_place_of_a_model_are_counted() -> None:
    answers = [
        answer("files", source=AssignedBy.LLM),
        answer("mail"),
        Classification((), SuggestedSkill("New")),
        answer(),
    ]
    *_, report = reports_of("llm", LABELS, answers)
    assert report.by_rules == 1


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    # From Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilsons(hits: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(hits, trials) == pytest.approx((low, high), abs=5e-5)


def test_the_report_is_told_as_a_table_and_as_data() -> None:
    answers = [answer("files"), answer("mail"), answer("files"), answer()]
    result = result_of(labels_report(LABELS), reports_of("rules", LABELS, answers), "a-model")
    assert "4 labelled items, 1 of them in no skill; model a-model" in result.text
    assert "two readings chose the same skill for 75.0 % of 4 items (Cohen's kappa 0.64)" in result.text
    (row,) = [line for line in result.text.splitlines() if line.startswith("rules      all")]
    assert row.split()[:3] == ["rules", "all", "4"]
    assert "75.0 (30-95)" in row
    assert "  1  mail was called files" in result.text
    assert result.data["labels"]["splits"] == {"test": 2, "tune": 2}  # type: ignore[index]
    assert [entry["split"] for entry in result.data["classifiers"]] == ["test", "tune", "all"]  # type: ignore[attr-defined]
