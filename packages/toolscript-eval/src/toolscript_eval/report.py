"""Reports: as JSON and back, as text, and the comparison of two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.weights import RankingWeights, weights_from_json
from toolscript.tools.model.query import Strategy
from toolscript_eval.dataset import (
    CalibrationBin,
    CurvePoint,
    EvalReport,
    EvalRequest,
    EvalResult,
    Measure,
    Slice,
    SystemReport,
    SystemRole,
    TradeOff,
    Verdict,
)
from toolscript_eval.metrics import paired_difference

FORMAT = 1
DIGITS = 6
PAIRED = "ndcg@10"
T = TypeVar("T")

SHOWN = {
    "useful@3": "steps of queries with an answer of which a right item is shown, hits or marked guesses",
    "trusted@3": "queries with an answer that were called a good match and show a right item",
    "refused_there": "queries with an answer that were called no good match, though a right item is shown",
    "misleading": "queries that were called a good match, and nothing that is shown is right",
    "empty": "queries for which nothing is shown at all",
    "contradiction": "queries that were called no good match at a confidence of .5 or more",
}
SLICED = (
    "useful@3",
    "trusted@3",
    "misleading",
    "ndcg@10",
    "hit@1",
    "step_recall",
    "false_refusals",
    "false_answers",
)
MAIN = ("ndcg@10", "recall@1", "recall@5", "recall@10", "mrr", "hit@1", "step_recall")
CONFIDENCE = {
    "calibration_error": "distance of confidence and share of right answers",
    "false_refusals": "queries with an answer that were called no good match",
    "false_answers": "queries that nothing fits that were called a good match",
    "nothing_fits_auroc": "how often the verdict tells a query with an answer from one that nothing fits",
    "refused_without_gold": "queries called no good match once the right items were gone",
    "without_gold_auroc": "how often the verdict tells whether the right items are there",
}
# The part of these figures that is told by kind of unanswerable queries.
VERDICT = ("false_answers", "false_refusals", "nothing_fits_auroc")
ROUTING = {
    "routed": "queries that were routed by skills; the others searched all items",
    "skills_used": "skills a routed query went by, on average",
    "catalog_searched": "share of the items that were searched, on average",
    "gold_lost": "right items that were not searched, of all right items",
}
CURVE_AT = (0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)
NAMES, COLUMN = 16, 13


@dataclass(frozen=True)
class Change:
    """One measure of the engine before and after; `paired` is the difference query by query, if available."""

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
    """Parse the output of `report_to_json`; refuse anything else."""
    try:
        if data["format"] != FORMAT or not data["systems"]:
            raise ValueError(f"format {data['format']}, or no system in it")
        return _report(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(
            f"this is no report of `toolscript-eval`: {type(error).__name__} {error}",
            hint="compare with a file that `toolscript-eval --out FILE` wrote",
        ) from None


def compare(before: EvalReport, after: EvalReport) -> tuple[Change, ...]:
    """Compare the engines of two reports by the measures that both have."""
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
    """Return the difference in nDCG@10 on the queries that both have."""
    both = [query for query in after.by_query if query in before.by_query]
    if not both:
        return None
    return paired_difference(
        [before.by_query[query] for query in both], [after.by_query[query] for query in both], seed
    )


def differences_of_setup(before: EvalReport, after: EvalReport) -> list[str]:
    """Describe other differences, so that their effect is not attributed to the engine."""
    compared = ("dataset", "distractors", "engine", "strategy", "model", "items", "queries")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in compared]
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
        calibration=_each(data["calibration"], lambda fields: CalibrationBin(**fields)),
        curve=_each(data["curve"], lambda fields: CurvePoint(**fields)),
        seed=int(data["seed"]),
        held_out=str(data.get("held_out", "")),
        strategy=Strategy(data.get("strategy", Strategy.DIRECT)),
        slices=_each(data.get("slices", ()), _slice),
        verdicts=_each(data.get("verdicts", ()), _verdict),
        sampled_from=None if (total := data.get("sampled_from")) is None else int(total),
    )


def _verdict(data: Mapping[str, Any]) -> Verdict:
    measures = {str(name): _measure(measure) for name, measure in data["measures"].items()}
    curve = _each(data["curve"], _trade_off)
    return Verdict(str(data["kind"]), int(data["queries"]), measures, curve)


def _trade_off(data: Mapping[str, Any]) -> TradeOff:
    return TradeOff(float(data["threshold"]), float(data["false_refusals"]), float(data["false_answers"]))


def _slice(data: Mapping[str, Any]) -> Slice:
    measures = {str(name): _measure(measure) for name, measure in data["measures"].items()}
    return Slice(str(data["name"]), str(data["value"]), int(data["queries"]), int(data["unanswerable"]), measures)


def _system(data: Mapping[str, Any]) -> SystemReport:
    measures = {str(name): _measure(measure) for name, measure in data["measures"].items()}
    by_query = {str(query): float(value) for query, value in data["by_query"].items()}
    role, note = SystemRole(data["role"]), str(data.get("note", ""))
    return SystemReport(str(data["system"]), measures, by_query, role, note)


def _measure(data: Mapping[str, Any]) -> Measure:
    return Measure(float(data["value"]), float(data["low"]), float(data["high"]), int(data["queries"]))


def _each(data: Any, read: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    return tuple(read(fields) for fields in data)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def report_text(report: EvalReport) -> str:
    engine = report.systems[0]
    parts = [
        _head(report),
        _shown(engine),
        _table(report),
        _ablations(report),
        _slices(report.slices),
        _explained(engine, ROUTING),
        _explained(engine, CONFIDENCE),
        _verdicts(report.verdicts),
        _curve(report.curve),
        _costs(engine),
    ]
    return "\n\n".join(part for part in parts if part)


def comparison_text(before: EvalReport, after: EvalReport, changes: Sequence[Change]) -> str:
    """Return the measures side by side, after other differences of the setup."""
    lines = ["compared with the earlier report"]
    lines += [f"  not the same: {change}" for change in differences_of_setup(before, after)]
    lines.append(f"  {'':22}{'before':>10}{'after':>10}{'difference':>12}")
    lines += [_change(change) for change in changes]
    return "\n".join(lines)


def _head(report: EvalReport) -> str:
    mixed = f" with {report.distractors}" if report.distractors else ""
    sampled = f" of {report.sampled_from:,}, evenly sampled" if report.sampled_from else ""
    nothing = f", {report.unanswerable:,} of them with no answer" if report.unanswerable else ""
    strategy = "" if report.strategy is Strategy.DIRECT else f", {report.strategy} search"
    return (
        f"{report.dataset}{mixed}: {report.items:,} items, {report.queries:,} queries{sampled}{nothing}\n"
        f"{report.engine}{strategy}, model {report.model}; ± is half the 95 % interval over the queries"
    )


def _shown(engine: SystemReport) -> str:
    measures = _explained(engine, SHOWN)
    return f"at default settings, what a person gets to see\n{measures}" if measures else ""


def _table(report: EvalReport) -> str:
    reports = [system_report for system_report in report.systems if system_report.role is not SystemRole.ABLATED]
    columns = [name for name in MAIN if any(name in system_report.measures for system_report in reports)]
    lines = [f"{'':{NAMES}}" + "".join(f"{name:>{COLUMN}}" for name in columns)]
    for system in reports:
        cells = [with_interval(system.measures[name]) if name in system.measures else "-" for name in columns]
        lines.append(f"{system.system:{NAMES}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells))
    return "\n".join(lines)


def with_interval(measure: Measure) -> str:
    """Return a value with half of its 95 % interval."""
    half = f"{(measure.high - measure.low) / 2:.3f}".removeprefix("0")
    return f"{measure.value:.3f} ±{half}"


def _slices(slices: Sequence[Slice]) -> str:
    """Return a table per label: the queries of each value, how many of them nothing fits, and the measures."""
    return "\n\n".join(_slice_table(name, slices) for name in dict.fromkeys(part.name for part in slices))


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return the verdict by kind of unanswerable queries; nothing if there is one kind, as in the lines above."""
    if len(verdicts) < 2:
        return ""
    lines = [f"{'nothing fits':{NAMES}}{'queries':>9}" + "".join(f"{name:>{COLUMN + 7}}" for name in VERDICT)]
    for verdict in verdicts:
        cells = [with_interval(verdict.measures[name]) if name in verdict.measures else "-" for name in VERDICT]
        counts = f"{verdict.kind[: NAMES - 1]:{NAMES}}{verdict.queries:>9,}"
        lines.append(counts + "".join(f"{cell:>{COLUMN + 7}}" for cell in cells))
    return "\n".join(lines)


def _slice_table(name: str, slices: Sequence[Slice]) -> str:
    parts = [part for part in slices if part.name == name]
    columns = [column for column in SLICED if any(column in part.measures for part in parts)]
    head = f"{'by ' + name:{NAMES}}{'queries':>9}{'no answer':>11}"
    lines = [head + "".join(f"{column:>{COLUMN + 3}}" for column in columns)]
    for part in parts:
        cells = [with_interval(part.measures[column]) if column in part.measures else "-" for column in columns]
        counts = f"{part.value[: NAMES - 1]:{NAMES}}{part.queries:>9,}{part.unanswerable:>11,}"
        lines.append(counts + "".join(f"{cell:>{COLUMN + 3}}" for cell in cells))
    return "\n".join(lines)


def _ablations(report: EvalReport) -> str:
    """Return the worth of each part: nDCG@10 without it, and the difference query by query."""
    off = [system for system in report.systems if system.role is SystemRole.ABLATED]
    lines = [
        f"{system.system:28}{with_interval(system.measures['ndcg@10']):>{COLUMN}}{_lost(report, system)}"
        for system in off
    ]
    return (
        "\n".join([f"{'with a part off':28}{'ndcg@10':>{COLUMN}}   difference to the whole engine", *lines])
        if off
        else ""
    )


def _lost(report: EvalReport, system: SystemReport) -> str:
    difference = paired(report.systems[0], system, report.seed)
    return f"   {_signed(difference)}" if difference else ""


def _signed(difference: Measure) -> str:
    return f"{difference.value:+.4f}  ({difference.low:+.4f} to {difference.high:+.4f})"


def _explained(engine: SystemReport, meanings: Mapping[str, str]) -> str:
    explained = [(name, meaning) for name, meaning in meanings.items() if name in engine.measures]
    return "\n".join(
        f"{name:22}{with_interval(engine.measures[name]):>{COLUMN}}   {meaning}" for name, meaning in explained
    )


def is_in_table(point: CurvePoint) -> bool:
    """Return whether a point of the curve is one of those that tables show."""
    return any(abs(point.threshold - threshold) < 1e-9 for threshold in CURVE_AT)


def _curve(curve: Sequence[CurvePoint]) -> str:
    """Return the refused shares at each confidence threshold, in percent."""
    points = [point for point in curve if is_in_table(point)]
    if not points:
        return ""
    rows: Mapping[str, Sequence[float | None]] = {
        "refused, answer there": [point.false_refusals for point in points],
        "refused, nothing fits": [point.refused_unanswerable for point in points],
        "refused, answer gone": [point.refused_without_gold for point in points],
    }
    lines = [f"{'least probability':24}" + "".join(f"{point.threshold:>8.2f}" for point in points)]
    for name, shares in rows.items():
        available = [share for share in shares if share is not None]
        if available:
            lines.append(f"{name:24}" + "".join(f"{share:>8.1%}" for share in available))
    return "\n".join(lines)


def _costs(engine: SystemReport) -> str:
    stages = [name.removeprefix("p50_ms:") for name in engine.measures if name.startswith("p50_ms:")]
    lines = [
        f"{stage:16}{engine.measures[f'p50_ms:{stage}'].value:>10.2f}{engine.measures[f'p95_ms:{stage}'].value:>10.2f}"
        for stage in stages
    ]
    if lines:
        lines.insert(0, f"{'':16}{'p50 ms':>10}{'p95 ms':>10}")
    if "tokens" in engine.measures:
        lines.append(f"{'tokens':16}{engine.measures['tokens'].value:>10.0f}   on average")
    return "\n".join(lines)


def _change(change: Change) -> str:
    line = f"  {change.measure:22}{change.before:>10.4f}{change.after:>10.4f}{change.difference:>+12.4f}"
    if change.paired is None:
        return line
    interval = f"{change.paired.low:+.4f} to {change.paired.high:+.4f}"
    return f"{line}   {interval} over {change.paired.queries:,} queries that both have"


def earlier_report(request: EvalRequest) -> EvalReport | None:
    """Return the earlier report. Call it before the evaluation, so that a wrong file fails at once."""
    return None if request.before is None else report_from_json(request.before)


def weights_of(request: EvalRequest, default: RankingWeights) -> RankingWeights:
    return default if request.weights is None else weights_from_json(request.weights)


def noted(report: EvalReport, request: EvalRequest) -> EvalReport:
    """Return the report with a note if the weights of the request were fitted without its dataset."""
    left_out = (request.weights or {}).get("held_out")
    return replace(report, held_out="weights fitted without it") if left_out == report.dataset else report


def result_of(dataset: EvalReport, request: EvalRequest, before: EvalReport | None) -> EvalResult:
    report = noted(dataset, request)
    data: Mapping[str, object] = report_to_json(report)
    text = report_text(report)
    if before is None:
        return EvalResult(data, text)
    changes = compare(before, report)
    compared = {"compared": [change_to_json(change) for change in changes]}
    return EvalResult({**data, **compared}, f"{text}\n\n{comparison_text(before, report, changes)}")
