"""A report as plain data and back, and what changed from one to the next."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from toolscript.errors import InvalidRequest
from toolscript.evaluation.bootstrap import paired_difference
from toolscript.model.judged import (
    CalibrationBin,
    CurvePoint,
    EvalReport,
    Measure,
    SystemReport,
    SystemRole,
)
from toolscript.model.queries import Strategy

FORMAT = 1
DIGITS = 6
PAIRED = "ndcg@10"
T = TypeVar("T")


@dataclass(frozen=True)
class Change:
    """One measure of the engine before and after; `paired` is the difference query by query, where known."""

    measure: str
    before: float
    after: float
    paired: Measure | None = None

    @property
    def difference(self) -> float:
        return self.after - self.before


def report_to_json(report: EvalReport) -> dict[str, object]:
    rounded = _rounded(asdict(report))
    return {"format": FORMAT, **rounded}


def report_from_json(data: Mapping[str, object]) -> EvalReport:
    """What `report_to_json` made; refused when it is something else."""
    try:
        if data["format"] != FORMAT or not data["systems"]:
            raise ValueError(f"format {data['format']}, or no system in it")
        return _report(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(
            f"this is no report of `toolscript eval`: {type(error).__name__} {error}",
            hint="compare with a file that `toolscript eval --out FILE` wrote",
        ) from None


def compare(before: EvalReport, after: EvalReport) -> tuple[Change, ...]:
    """The engines of the two, measure by measure, where both have it."""
    old, new = before.systems[0], after.systems[0]
    shared = [name for name in new.measures if name in old.measures]
    return tuple(
        Change(
            name,
            old.measures[name].value,
            new.measures[name].value,
            paired(old, new, after.seed) if name == PAIRED else None,
        )
        for name in shared
    )


def paired(before: SystemReport, after: SystemReport, seed: int) -> Measure | None:
    """How nDCG@10 differs on the queries that both were asked."""
    both = [query for query in after.by_query if query in before.by_query]
    if not both:
        return None
    return paired_difference([before.by_query[one] for one in both], [after.by_query[one] for one in both], seed)


def differences_of_setup(before: EvalReport, after: EvalReport) -> list[str]:
    """What else is not as it was, so that nobody takes its work for the engine's."""
    told = ("dataset", "distractors", "engine", "strategy", "model", "items", "queries")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in told]
    return [f"{name} was {old or 'none'}, is {new or 'none'}" for name, old, new in pairs if old != new]


def change_to_json(change: Change) -> dict[str, object]:
    data = {**asdict(change), "difference": change.difference}
    rounded: dict[str, object] = _rounded(data)
    return rounded


def _report(data: Mapping[str, Any]) -> EvalReport:
    return EvalReport(
        dataset=str(data["dataset"]),
        distractors=str(data["distractors"]),
        engine=str(data["engine"]),
        model=str(data["model"]),
        items=int(data["items"]),
        queries=int(data["queries"]),
        unanswerable=int(data["unanswerable"]),
        systems=_each(data["systems"], _system),
        calibration=_each(data["calibration"], lambda one: CalibrationBin(**one)),
        curve=_each(data["curve"], lambda one: CurvePoint(**one)),
        seed=int(data["seed"]),
        held_out=str(data.get("held_out", "")),
        strategy=Strategy(data.get("strategy", Strategy.DIRECT)),
    )


def _system(data: Mapping[str, Any]) -> SystemReport:
    measures = {str(name): _measure(one) for name, one in data["measures"].items()}
    by_query = {str(query): float(value) for query, value in data["by_query"].items()}
    return SystemReport(str(data["system"]), measures, by_query, SystemRole(data["role"]))


def _measure(data: Mapping[str, Any]) -> Measure:
    return Measure(float(data["value"]), float(data["low"]), float(data["high"]), int(data["queries"]))


def _each(data: Any, read: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    return tuple(read(one) for one in data)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return value
