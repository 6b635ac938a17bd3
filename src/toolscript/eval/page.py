"""The quality page: tables made of the reports of several datasets and both engines."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from toolscript.core.errors import InvalidRequest
from toolscript.eval.dataset import CurvePoint, EvalReport, Measure, SystemReport, SystemRole
from toolscript.eval.report import CONFIDENCE, CURVE_AT, ROUTING, SLICED, VERDICT, paired
from toolscript.tools.model.query import Strategy

SERVICE = "service"
ENGINES = ("gateway", SERVICE)
BASELINES = ("BM25", "dense", "RRF", "z-score", "native-bm25", "native-regex")
NDCG = "ndcg@10"
UNNAMED = "unnamed"

UNKNOWN = "–"
_SPECIAL = re.compile(r"([\\`*\[\]|~#!$])")
# An underscore inside a word is no markup, and most names of datasets have one.
_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)|(?<=_)_|_(?=_)")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

RANKING = {
    "recall@1": "Recall@1",
    "recall@5": "Recall@5",
    "recall@10": "Recall@10",
    "mrr": "MRR",
    "hit@1": "hit@1",
    "step_recall": "step recall",
}
CONFIDENCE_TITLES = {
    "calibration_error": "calibration error",
    "nothing_fits_auroc": "nothing-fits AUROC",
    "false_answers": "false answers",
    "false_refusals": "false refusals",
    "refused_without_gold": "refused without gold",
}
ROUTED = {
    "routed": "routed",
    "skills_used": "skills",
    "catalog_searched": "catalog searched",
    "gold_lost": "gold lost",
}

P50, P95 = "p50_ms:", "p95_ms:"
NOT_REPORTED = "not said"
PICTURE = "nDCG@10 of the engines, of plain baselines and of peers on every set, with 95 % intervals"
VERDICT_PICTURE = "False answers over false refusals as the threshold of the verdict moves, with the one in use"
PEER_RANKING = {NDCG: "nDCG@10", "hit@1": "hit@1", "recall@5": "Recall@5"}
INTRO = (
    "± is half the 95 % bootstrap interval over the queries of a set. A difference is taken query by query, with "
    "its interval in brackets: two systems may differ for sure even where their own intervals overlap."
)

Entry = tuple[str, str, SystemReport]


class Setup(NamedTuple):
    """Engines are compared only if all of this is equal."""

    name: str
    model: str
    items: int
    queries: int


@dataclass(frozen=True)
class QualityRow:
    """One dataset with the report of each engine; `routed` are those of the service with skill routing."""

    name: str
    setup: Setup
    reports: Mapping[str, EvalReport]
    routed: Mapping[Strategy, EvalReport] = field(default_factory=dict)

    @property
    def engines(self) -> dict[str, SystemReport]:
        """Return the engines by name, in the same order in every row."""
        return {name: self.reports[name].systems[0] for name in ENGINES if name in self.reports}

    @property
    def baselines(self) -> dict[str, SystemReport]:
        """Return the baselines of the first report: the same catalog and model give the same ones."""
        plain = {
            system.system: system
            for report in reversed(list(self.reports.values()))
            for system in report.systems
            if system.role is SystemRole.BASELINE
        }
        return {name: plain[name] for name in BASELINES if name in plain}

    @property
    def peers(self) -> dict[str, SystemReport]:
        """Return the peers by name, those of the first report that has them."""
        return {
            system.system: system
            for report in reversed(list(self.reports.values()))
            for system in report.systems
            if system.role is SystemRole.PEER
        }

    @property
    def best_baseline(self) -> SystemReport | None:
        measured_systems = [system for system in self.baselines.values() if measured(system.measures, NDCG)]
        return max(measured_systems, key=lambda system: system.measures[NDCG].value, default=None)


def rows_of(reports: Sequence[EvalReport]) -> list[QualityRow]:
    """Return the rows in order of the reports; refuse two reports of one engine with the same setup."""
    by_setup: dict[Setup, dict[str, EvalReport]] = {}
    for report in reports:
        if report.strategy is Strategy.DIRECT:
            setup = _setup(report)
            of_set = by_setup.setdefault(setup, {})
            _check(report, setup, of_set)
            of_set[report.engine] = report
    routed = _routed(reports, by_setup)
    return [
        QualityRow(_label(setup, list(by_setup)), setup, of_set, routed.get(setup, {}))
        for setup, of_set in by_setup.items()
    ]


def _setup(report: EvalReport) -> Setup:
    return Setup(_set_name(report), one_line(report.model), report.items, report.queries)


def _routed(
    reports: Sequence[EvalReport], direct: Mapping[Setup, Mapping[str, EvalReport]]
) -> dict[Setup, dict[Strategy, EvalReport]]:
    """Return the reports with skill routing; each needs one without, to compare with."""
    by_setup: dict[Setup, dict[Strategy, EvalReport]] = {}
    for report in reports:
        if report.strategy is Strategy.DIRECT:
            continue
        setup, how = _setup(report), f"the {report.strategy} search of the service"
        if report.engine != SERVICE or SERVICE not in direct.get(setup, {}):
            raise InvalidRequest(
                f"there is nothing to compare {how} on {setup.name} with",
                hint="also give the report of `toolscript eval --engine service --strategy direct` on the same",
            )
        of_set = by_setup.setdefault(setup, {})
        if report.strategy in of_set:
            raise InvalidRequest(f"two reports are about {how} on {setup.name}", hint="give one of them")
        of_set[report.strategy] = report
    return by_setup


def measured(measures: Mapping[str, Measure], name: str) -> Measure | None:
    """Return a measure; None if it is missing or not finite, as the AUROC of queries of one kind."""
    measure = measures.get(name)
    return measure if measure and all(map(math.isfinite, (measure.value, measure.low, measure.high))) else None


def one_line(text: str) -> str:
    """Return the text without control characters, line breaks and marks of writing direction."""
    return " ".join("".join(char if _is_shown(char) else " " for char in text).split())


def _is_shown(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _set_name(report: EvalReport) -> str:
    return " + ".join(filter(None, (one_line(report.dataset) or UNNAMED, one_line(report.distractors))))


def _check(report: EvalReport, setup: Setup, of_set: Mapping[str, EvalReport]) -> None:
    if report.engine not in ENGINES:
        raise InvalidRequest(
            f"a report is about {one_line(report.engine) or UNNAMED}, which is no engine",
            hint=f"give reports of {' and '.join(ENGINES)}",
        )
    if report.engine in of_set:
        raise InvalidRequest(f"two reports are about the {report.engine} on {setup.name}", hint="give one of them")


def _label(setup: Setup, setups: Sequence[Setup]) -> str:
    """Return the name of the dataset, and what distinguishes it from other rows of that name."""
    alike = [other for other in setups if other.name == setup.name]
    differs = [len(set(values)) > 1 for values in zip(*alike, strict=True)]
    all_facts = (setup.name, setup.model, f"{setup.items:,} items", f"{setup.queries:,} queries")
    facts = [fact for fact, needed in zip(all_facts, differs, strict=True) if needed]
    return f"{setup.name} ({', '.join(facts)})" if facts else setup.name


def plain(text: str) -> str:
    """Escape text for a line, a heading or a cell."""
    escaped = _UNDERSCORE.sub(r"\\_", _SPECIAL.sub(r"\\\1", one_line(text)))
    return "".join(_HTML.get(char, char) for char in escaped)


def code(text: str) -> str:
    """Return inline code with a fence longer than any run of backticks in it."""
    line = one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """Return a table of Markdown cells. The first `words` columns hold text, the others numbers."""
    marks = ["---" if index < words else "---:" for index in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows))


REFUSED: Mapping[str, Callable[[CurvePoint], float | None]] = {
    "answer there": lambda point: point.false_refusals,
    "nothing fits": lambda point: point.refused_unanswerable,
    "answer gone": lambda point: point.refused_without_gold,
}

Rows = Sequence[QualityRow]


def quality_page(
    reports: Sequence[EvalReport], *, command: str, plot: str, verdict_plot: str | None = None
) -> str:
    """Return the page. `command` generates it, `plot` and `verdict_plot` are the file names of its plots."""
    rows = rows_of(reports)
    parts = [
        f"# Search quality\n\nGenerated by {code(command)}. Change the reports, not this page.\n\n{INTRO}",
        f"![{PICTURE}]({quote(plot)})",
        _sets(rows),
        _ndcg(rows),
        _peers(rows),
        _ranking(rows),
        _routing(rows),
        _confidence(rows),
        _verdicts(rows, verdict_plot),
        _slices(rows),
        _trade_off(rows),
        _latency(rows),
        _tokens(rows),
        _ablations(rows),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sets(rows: Rows) -> str:
    cells = [
        [
            plain(row.name),
            plain(row.setup.model),
            f"{row.setup.items:,}",
            _sampled(first := next(iter(row.reports.values()))),
            f"{first.unanswerable:,}",
        ]
        for row in rows
    ]
    head = ("Set", "Model", "Items", "Queries", "Nothing fits")
    return f"## The sets\n\n{table(head, cells, words=2)}"


def _sampled(report: EvalReport) -> str:
    return f"{report.queries:,}" + (f" of {report.sampled_from:,}" if report.sampled_from else "")


def _ndcg(rows: Rows) -> str:
    engines = [name for name in ENGINES if any(name in row.engines for row in rows)]
    compared = ["gateway - service"] if len(engines) > 1 else []
    peers = peer_names(rows)
    head = ("Set", "Held out", *engines, *compared, "Best baseline", *BASELINES, *map(plain, peers))
    cells = [
        [
            plain(row.name),
            plain(_held_out(row)),
            *(_of(row.engines.get(name), NDCG) for name in engines),
            *(_gateway_less_service(row) for _ in compared),
            _best(row),
            *(_of(row.baselines.get(name), NDCG) for name in BASELINES),
            *(_of(row.peers.get(name), NDCG) for name in peers),
        ]
        for row in rows
    ]
    return f"## nDCG@10\n\n{table(head, cells, words=2)}"


def peer_names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.peers))


def _peers(rows: Rows) -> str:
    """Compare other projects with the gateway, or with the service where a set has no report of the gateway."""
    cells = [
        [
            plain(row.name),
            plain(name),
            *(_of(system, measure) for measure in PEER_RANKING),
            _less(row, name, system),
        ]
        for row in rows
        for name, system in {**row.engines, **row.peers}.items()
        if row.peers
    ]
    notes = {name: system.note for row in rows for name, system in row.peers.items()}
    told = "\n".join(f"- {plain(name)}: {plain(note) or NOT_REPORTED}" for name, note in notes.items())
    text = f"Other projects, with their own code on the same tools and queries.\n\n{told}"
    head = ("Set", "System", *PEER_RANKING.values(), "nDCG@10 of the first less it")
    return f"## Beside other projects\n\n{text}\n\n{table(head, cells, words=2)}" if cells else ""


def _less(row: QualityRow, name: str, system: SystemReport) -> str:
    first, engine = next(iter(row.engines.items()))
    return UNKNOWN if name == first else _difference(system, engine, row.reports[first].seed)


def _held_out(row: QualityRow) -> str:
    """Return the notes of the reports, with the engine where they differ."""
    notes = {engine: row.reports[engine].held_out for engine in row.engines}
    if len(set(notes.values())) == 1:
        return next(iter(notes.values())) or NOT_REPORTED
    return "; ".join(f"{engine}: {note or NOT_REPORTED}" for engine, note in notes.items())


def _gateway_less_service(row: QualityRow) -> str:
    gateway, service = (row.engines.get(name) for name in ENGINES)
    if gateway is None or service is None:
        return UNKNOWN
    return _difference(service, gateway, row.reports[ENGINES[0]].seed)


def _difference(before: SystemReport, after: SystemReport, seed: int) -> str:
    """Return the difference in nDCG@10, query by query if both have the same queries."""
    by_query = paired(before, after, seed)
    if by_query is not None:
        return f"{by_query.value:+.3f} ({by_query.low:+.3f} to {by_query.high:+.3f})"
    old, new = measured(before.measures, NDCG), measured(after.measures, NDCG)
    return f"{new.value - old.value:+.3f}" if old and new else UNKNOWN


def _best(row: QualityRow) -> str:
    best = row.best_baseline
    return UNKNOWN if best is None else f"{plain(best.system)} {_of(best, NDCG)}"


def _of(system: SystemReport | None, name: str) -> str:
    return UNKNOWN if system is None else _measured_cell(system.measures, name)


def _measured_cell(measures: Mapping[str, Measure], name: str) -> str:
    measure = measured(measures, name)
    return UNKNOWN if measure is None else _cell(measure)


def _cell(measure: Measure) -> str:
    half = f"{(measure.high - measure.low) / 2:.3f}".removeprefix("0")
    return f"{measure.value:.3f} ±{half}"


def _ranking(rows: Rows) -> str:
    entries = list(_engine_entries(rows, best_baseline=True))
    return _section("What is found", "Of each set the engines, then its best baseline.", entries, RANKING)


def _routing(rows: Rows) -> str:
    """Compare with the search without skills, of the same run if it has one: two runs differ slightly."""
    cells = [
        [
            plain(row.name),
            strategy.value,
            _of(direct := _off(report).get("skills", row.engines[SERVICE]), NDCG),
            _of(report.systems[0], NDCG),
            _difference(direct, report.systems[0], report.seed),
            *(_of(report.systems[0], name) for name in ROUTED),
        ]
        for row in rows
        for strategy, report in row.routed.items()
    ]
    head = ("Set", "Strategy", "direct nDCG@10", "nDCG@10", "difference", *ROUTED.values())
    text = _explanations(ROUTED, ROUTING)
    return f"## Routed by skills\n\n{text}\n\n{table(head, cells, words=2)}" if cells else ""


def _explanations(titles: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    return "\n".join(f"- {title}: {meanings[name]}" for name, title in titles.items())


def _confidence(rows: Rows) -> str:
    text = _explanations(CONFIDENCE_TITLES, CONFIDENCE)
    return _section("Confidence", text, list(_engine_entries(rows)), CONFIDENCE_TITLES)


def _verdicts(rows: Rows, picture: str | None) -> str:
    """Return the verdict by kind of unanswerable queries, with its picture."""
    cells = [
        [
            *(plain(row.name), plain(engine), plain(verdict.kind), f"{verdict.queries:,}"),
            *(_measured_cell(verdict.measures, name) for name in VERDICT),
        ]
        for row in rows
        for engine in row.engines
        for verdict in row.reports[engine].verdicts
    ]
    if not cells:
        return ""
    head = ("Set", "System", "Nothing fits", "Queries", *(CONFIDENCE_TITLES[name] for name in VERDICT))
    text = "Each kind of queries that nothing fits, beside all queries of the set that have an answer."
    drawn = [f"![{VERDICT_PICTURE}]({quote(picture)})"] if picture else []
    return "\n\n".join(["## The verdict", text, *drawn, table(head, cells, words=3)])


def _slices(rows: Rows) -> str:
    """Return the engines on the queries of each label that a report was requested by."""
    cells = [
        [
            *(plain(row.name), plain(engine), plain(f"{part.name} {part.value}")),
            *(f"{part.queries:,}", f"{part.unanswerable:,}"),
            *(_measured_cell(part.measures, name) for name in SLICED),
        ]
        for row in rows
        for engine in row.engines
        for part in row.reports[engine].slices
    ]
    if not cells:
        return ""
    titles = {NDCG: "nDCG@10", **RANKING, **CONFIDENCE_TITLES}
    head = ("Set", "System", "Queries of", "Queries", "Nothing fits", *(titles[name] for name in SLICED))
    text = "False refusals are those of queries with an answer, false answers those of queries that nothing fits."
    return f"## By kind of query\n\n{text}\n\n{table(head, cells, words=3)}"


def _engine_entries(rows: Rows, *, best_baseline: bool = False) -> Iterable[Entry]:
    for row in rows:
        yield from ((row.name, name, system) for name, system in row.engines.items())
        if best_baseline and row.best_baseline is not None:
            yield row.name, row.best_baseline.system, row.best_baseline


def _section(title: str, text: str, entries: Sequence[Entry], columns: Mapping[str, str]) -> str:
    """Return a table with a row per system, without columns that no system has."""
    names = [name for name in columns if any(measured(system.measures, name) for _, _, system in entries)]
    if not names:
        return ""
    cells = [[plain(of), plain(who), *(_of(system, name) for name in names)] for of, who, system in entries]
    head = ("Set", "System", *(columns[name] for name in names))
    return f"## {title}\n\n{text}\n\n{table(head, cells, words=2)}"


def _trade_off(rows: Rows) -> str:
    tables = [f"### {plain(row.name)}\n\n{content}" for row in rows if (content := _curve(row))]
    text = (
        "The share of queries that a least confidence refuses: wrongly where the answer is there, rightly where "
        "nothing fits or the right items are gone from the catalog."
    )
    return "\n\n".join(["## Least confidence", text, *tables]) if tables else ""


def _curve(row: QualityRow) -> str:
    curves = {name: list(filter(_is_in_table, row.reports[name].curve)) for name in row.engines}
    thresholds = sorted({point.threshold for curve in curves.values() for point in curve})
    cells = [
        [kind, name, *shares]
        for kind, share in REFUSED.items()
        for name, curve in curves.items()
        if set(shares := _shares(curve, thresholds, share)) != {UNKNOWN}
    ]
    return (
        table(("Refused", "System", *(f"{minimum:.2f}" for minimum in thresholds)), cells, words=2)
        if thresholds
        else ""
    )


def _is_in_table(point: CurvePoint) -> bool:
    return any(abs(point.threshold - threshold) < 1e-9 for threshold in CURVE_AT)


def _shares(
    curve: Sequence[CurvePoint], thresholds: Sequence[float], share: Callable[[CurvePoint], float | None]
) -> list[str]:
    by_threshold = {point.threshold: share(point) for point in curve}
    shares = [by_threshold.get(minimum) for minimum in thresholds]
    return [UNKNOWN if value is None else f"{value:.1%}" for value in shares]


def _latency(rows: Rows) -> str:
    tables = [f"### {name}\n\n{content}" for name in ENGINES if (content := _stages(rows, name))]
    text = "Milliseconds of each stage, p50 / p95, on the machine that made the report."
    return "\n\n".join(["## Latency", text, *tables]) if tables else ""


def _stages(rows: Rows, engine: str) -> str:
    systems = {row.name: row.engines[engine] for row in rows if engine in row.engines}
    names = [name for system in systems.values() for name in system.measures if name.startswith(P50)]
    stages = sorted(dict.fromkeys(name.removeprefix(P50) for name in names), key=lambda stage: stage == "total")
    cells = [[plain(of), *(_spent(system, stage) for stage in stages)] for of, system in systems.items()]
    return table(("Set", *map(plain, stages)), cells) if stages else ""


def _spent(system: SystemReport, stage: str) -> str:
    half, maximum = measured(system.measures, P50 + stage), measured(system.measures, P95 + stage)
    return f"{half.value:.2f} / {maximum.value:.2f}" if half and maximum else UNKNOWN


def _tokens(rows: Rows) -> str:
    engines = [name for name in ENGINES if any(_counted(row, name) for row in rows)]
    counted = [row for row in rows if any(_counted(row, name) for name in engines)]
    cells = [[plain(row.name), *(_count(_counted(row, name)) for name in engines)] for row in counted]
    text = "What a model reads of one answer, on average."
    return f"## Tokens per answer\n\n{text}\n\n{table(('Set', *engines), cells)}" if cells else ""


def _counted(row: QualityRow, engine: str) -> Measure | None:
    return measured(row.engines[engine].measures, "tokens") if engine in row.engines else None


def _count(tokens: Measure | None) -> str:
    return UNKNOWN if tokens is None else f"{tokens.value:,.0f} ±{(tokens.high - tokens.low) / 2:,.0f}"


def _ablations(rows: Rows) -> str:
    tables = [f"### {name}\n\n{content}" for name in ENGINES if (content := _parts(rows, name))]
    text = (
        "What nDCG@10 becomes when a part of the engine is off, as a difference to the whole engine. "
        "Bold: the interval of the difference does not hold zero."
    )
    return "\n\n".join(["## Parts", text, *tables]) if tables else ""


def _parts(rows: Rows, engine: str) -> str:
    reports = {row.name: row.reports[engine] for row in rows if engine in row.reports}
    off = {name: ablated for name, report in reports.items() if (ablated := _off(report))}
    parts = list(dict.fromkeys(part for ablated in off.values() for part in ablated))
    cells = [
        [plain(name), *(_lost(reports[name], ablated.get(part)) for part in parts)]
        for name, ablated in off.items()
    ]
    return table(("Set", *map(plain, parts)), cells) if off else ""


def _off(report: EvalReport) -> dict[str, SystemReport]:
    off = [system for system in report.systems if system.role is SystemRole.ABLATED]
    return {system.system.removeprefix("without "): system for system in off}


def _lost(report: EvalReport, off: SystemReport | None) -> str:
    if off is None:
        return UNKNOWN
    lost = paired(report.systems[0], off, report.seed)
    if lost is None:
        return _difference(report.systems[0], off, report.seed)
    return f"**{lost.value:+.4f}**" if lost.low > 0 or lost.high < 0 else f"{lost.value:+.4f}"
