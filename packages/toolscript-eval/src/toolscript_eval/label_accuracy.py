"""How often classifications agree with labels, whether their confidence is calibrated, and how they spread."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from toolscript.core.items import AssignedBy
from toolscript.core.taxonomy import Classification
from toolscript_eval.dataset import CalibrationBin, EvalResult
from toolscript_eval.labels import NONE, Agreement, Label, agreement_of
from toolscript_eval.metrics import calibration_bins, calibration_error, wilson_interval

FORMAT = 1
DIGITS = 6
ALL = "all"
MAX_CONFUSIONS = 5
ROW = "{:10} {:8} {:>5}  {:>16} {:>16} {:>9} {:>9} {:>9} {:>7} {:>8}"


@dataclass(frozen=True)
class Share:
    """A share of items, with its 95 % Wilson interval."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(hits: int, items: int) -> "Share":
        return Share(hits / items, *wilson_interval(hits, items))

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ({100 * self.low:.0f}-{100 * self.high:.0f})"


@dataclass(frozen=True)
class Balance:
    """How evenly items spread over skills. `effective_skills` is the exponential of the entropy: the number of
    skills of equal size that would be as varied. `largest_share` is that of all items."""

    largest_skill: str
    largest_share: float
    effective_skills: float

    @staticmethod
    def of(skill_ids: Sequence[str | None]) -> "Balance":
        counts = Counter(skill_id for skill_id in skill_ids if skill_id)
        if not counts:
            return Balance("", 0.0, 0.0)
        largest, size = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        entropy = -sum(count / counts.total() * math.log(count / counts.total()) for count in counts.values())
        return Balance(largest, size / len(skill_ids), math.exp(entropy))


@dataclass(frozen=True)
class Mistake:
    """`skill` is the primary skill that the classifier chose where `best` is right; None if it chose none."""

    dataset: str
    item_id: str
    best: str
    skill: str | None
    confidence: float


@dataclass(frozen=True)
class ClassifierReport:
    """`acceptable`: the primary skill is one that the label accepts. `exact`: it is the best one.

    `calibration` compares the confidence of primary skills with how often they are acceptable. `by_rules` is the
    number of items that the rules classified, also in place of a language model.
    """

    classifier: str
    split: str
    items: int
    acceptable: Share
    exact: Share
    coverage: Share
    balance: Balance
    calibration_error: float
    calibration: tuple[CalibrationBin, ...]
    by_rules: int
    mistakes: tuple[Mistake, ...]


@dataclass(frozen=True)
class LabelsReport:
    """The labels themselves: what a perfect classifier would give."""

    items: int
    splits: Mapping[str, int]
    without_skill: int
    balance: Balance
    agreement: Agreement | None


def reports_of(
    classifier: str, labels: Sequence[Label], answers: Sequence[Classification]
) -> list[ClassifierReport]:
    """Report on each split, and on all items if there are several."""
    pairs = list(zip(labels, answers, strict=True))
    splits = sorted({label.split for label in labels})
    reports = [
        _report(classifier, split or ALL, [pair for pair in pairs if pair[0].split == split]) for split in splits
    ]
    return [*reports, _report(classifier, ALL, pairs)] if len(splits) > 1 else reports


def _report(classifier: str, split: str, pairs: Sequence[tuple[Label, Classification]]) -> ClassifierReport:
    skill_ids = [primary_of(answer) for _, answer in pairs]
    right = [label.accepts(skill_id) for (label, _), skill_id in zip(pairs, skill_ids, strict=True)]
    exact = [label.is_best(skill_id) for (label, _), skill_id in zip(pairs, skill_ids, strict=True)]
    assigned = [place for place, skill_id in enumerate(skill_ids) if skill_id]
    sure = np.array([_confidence(pairs[place][1]) for place in assigned], dtype=np.float64)
    hits = np.array([right[place] for place in assigned], dtype=np.float64)
    return ClassifierReport(
        classifier,
        split,
        len(pairs),
        Share.of(sum(right), len(pairs)),
        Share.of(sum(exact), len(pairs)),
        Share.of(len(assigned), len(pairs)),
        Balance.of(skill_ids),
        calibration_error(sure, hits) if assigned else 0.0,
        calibration_bins(sure, hits) if assigned else (),
        sum(_is_by_rules(answer) for _, answer in pairs),
        tuple(
            Mistake(label.dataset, label.item_id, label.best, primary_of(answer), _confidence(answer))
            for (label, answer), is_right in zip(pairs, right, strict=True)
            if not is_right
        ),
    )


def primary_of(answer: Classification) -> str | None:
    return answer.assignments[0].skill_id if answer.assignments else None


def _confidence(answer: Classification) -> float:
    return answer.assignments[0].confidence if answer.assignments else 0.0


def _is_by_rules(answer: Classification) -> bool:
    return any(assignment.source is AssignedBy.RULES for assignment in answer.assignments)


def labels_report(labels: Sequence[Label]) -> LabelsReport:
    best = [None if label.best == NONE else label.best for label in labels]
    splits = Counter(label.split or ALL for label in labels)
    return LabelsReport(
        len(labels), dict(sorted(splits.items())), best.count(None), Balance.of(best), agreement_of(labels)
    )


def result_of(labels: LabelsReport, reports: Sequence[ClassifierReport], model: str) -> EvalResult:
    data = {
        "format": FORMAT,
        "model": model,
        "labels": asdict(labels),
        "classifiers": [asdict(report) for report in reports],
    }
    rounded = {name: _rounded(value) for name, value in data.items()}
    return EvalResult(rounded, "\n".join(_text(labels, reports, model)))


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


def _text(labels: LabelsReport, reports: Sequence[ClassifierReport], model: str) -> Iterable[str]:
    yield f"{labels.items:,} labelled items, {labels.without_skill:,} of them in no skill; model {model}"
    if labels.agreement is not None:
        agreement = labels.agreement
        yield (
            f"two readings chose the same skill for {100 * agreement.share:.1f} % of {agreement.items:,} items"
            f" (Cohen's kappa {agreement.kappa:.2f})"
        )
    yield ""
    yield ROW.format(
        "Classifier",
        "Split",
        "Items",
        "Acceptable %",
        "Exact %",
        "In a skill",
        "Largest",
        "Effective",
        "ECE",
        "By rules",
    )
    yield from (_row(report) for report in reports)
    balance = labels.balance
    share = 1 - labels.without_skill / labels.items
    yield ROW.format(
        "labels",
        ALL,
        labels.items,
        "",
        "",
        _percent(share),
        _percent(balance.largest_share),
        f"{balance.effective_skills:.1f}",
        "",
        "",
    )
    yield from _explained()
    for report in reports:
        if report.split == ALL or len(labels.splits) == 1:
            yield from _details(report)


def _row(report: ClassifierReport) -> str:
    balance = report.balance
    return ROW.format(
        report.classifier,
        report.split,
        report.items,
        str(report.acceptable),
        str(report.exact),
        _percent(report.coverage.value),
        _percent(balance.largest_share),
        f"{balance.effective_skills:.1f}",
        f"{report.calibration_error:.3f}",
        report.by_rules,
    )


def _explained() -> Iterable[str]:
    yield ""
    yield "Acceptable: the primary skill is one that the label accepts; exact: it is the best one; 95 % intervals."
    yield "Largest: share of the largest skill; effective: skills of equal size that would be as varied."
    yield "ECE: mean distance of confidence and share of acceptable skills, over ten bins."


def _details(report: ClassifierReport) -> Iterable[str]:
    yield ""
    yield f"{report.classifier}: confidence and how often it is right"
    for bin_ in report.calibration:
        yield f"  {bin_.confidence:.2f}  {bin_.right:.2f}  of {bin_.queries:,}"
    confusions = Counter((mistake.best, mistake.skill or NONE) for mistake in report.mistakes)
    if confusions:
        yield f"{report.classifier}: most frequent mistakes"
    for (best, skill), count in confusions.most_common(MAX_CONFUSIONS):
        yield f"  {count:3,}  {best} was called {skill}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
