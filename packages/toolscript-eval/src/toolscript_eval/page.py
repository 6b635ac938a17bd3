"""The quality page: tables made of the reports of several datasets and both engines."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from toolscript.core.errors import InvalidRequest
from toolscript.tools.model.query import Strategy
from toolscript_eval.dataset import CurvePoint, EvalReport, Measure, SystemReport, SystemRole
from toolscript_eval.report import (
    CONFIDENCE,
    ROUTING,
    SHOWN,
    SLICED,
    VERDICT,
    is_in_table,
    paired,
    with_interval,
)

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
SHOWN_TITLES = {name: name.replace("_", " ") for name in SHOWN}
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
                hint="also give the report of `toolscript-eval --engine service --strategy direct` on the same",
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


@dataclass(frozen=True)
class Table:
    """Cells of Markdown. The first `words` columns hold text, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2
    title: str = ""


@dataclass(frozen=True)
class Section:
    """A heading, a text, perhaps a plot, and tables; a section without a row is left out."""

    title: str
    text: str
    tables: Sequence[Table]
    picture: str = ""


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
    sections = [
        _sets(rows),
        _engines(
            "What a person gets to see", rows, SHOWN_TITLES, SHOWN, "At default settings, as a person searches."
        ),
        _ndcg(rows),
        _peers(rows),
        _ranking(rows),
        _routing(rows),
        _engines("Confidence", rows, CONFIDENCE_TITLES, CONFIDENCE),
        _verdicts(rows, verdict_plot),
        _slices(rows),
        _thresholds(rows),
        _latency(rows),
        _tokens(rows),
        _ablations(rows),
    ]
    # Markdown, not HTML: names are escaped where a cell is made, by `plain`.
    templates = Environment(
        loader=PackageLoader("toolscript_eval", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        autoescape=False,  # noqa: S701
    )
    return templates.get_template("page.md.jinja").render(
        command=code(command),
        intro=INTRO,
        picture=f"![{PICTURE}]({quote(plot)})",
        sections=[section for section in sections if any(table.rows for table in section.tables)],
    )


def _sets(rows: Rows) -> Section:
    cells = [
        [
            plain(row.name),
            plain(row.setup.model),
            f"{row.setup.items:,}",
            f"{first.queries:,}" + (f" of {first.sampled_from:,}" if first.sampled_from else ""),
            f"{first.unanswerable:,}",
        ]
        for row in rows
        for first in [next(iter(row.reports.values()))]
    ]
    return Section("The sets", "", [Table(("Set", "Model", "Items", "Queries", "Nothing fits"), cells)])


def _ndcg(rows: Rows) -> Section:
    engines = [name for name in ENGINES if any(name in row.engines for row in rows)]
    compared = ["gateway - service"] if len(engines) > 1 else []
    peers = peer_names(rows)
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
    head = ("Set", "Held out", *engines, *compared, "Best baseline", *BASELINES, *map(plain, peers))
    return Section("nDCG@10", "", [Table(head, cells)])


def peer_names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.peers))


def _peers(rows: Rows) -> Section:
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
    listed = "\n".join(f"- {plain(name)}: {plain(note) or NOT_REPORTED}" for name, note in notes.items())
    text = f"Other projects, with their own code on the same tools and queries.\n\n{listed}"
    head = ("Set", "System", *PEER_RANKING.values(), "nDCG@10 of the first less it")
    return Section("Beside other projects", text, [Table(head, cells)])


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
    return UNKNOWN if system is None else _cell(system.measures, name)


def _cell(measures: Mapping[str, Measure], name: str) -> str:
    measure = measured(measures, name)
    return UNKNOWN if measure is None else with_interval(measure)


def _ranking(rows: Rows) -> Section:
    entries = []
    for row in rows:
        entries += _entries([row])
        if row.best_baseline is not None:
            entries.append((row.name, row.best_baseline.system, row.best_baseline))
    return _section("What is found", "Of each set the engines, then its best baseline.", entries, RANKING)


def _routing(rows: Rows) -> Section:
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
    return Section("Routed by skills", _explanations(ROUTED, ROUTING), [Table(head, cells)])


def _explanations(titles: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    return "\n".join(f"- {title}: {meanings[name]}" for name, title in titles.items())


def _engines(
    title: str, rows: Rows, titles: Mapping[str, str], meanings: Mapping[str, str], text: str = ""
) -> Section:
    explained = "\n\n".join(filter(None, (text, _explanations(titles, meanings))))
    return _section(title, explained, _entries(rows), titles)


def _entries(rows: Rows) -> list[Entry]:
    return [(row.name, name, system) for row in rows for name, system in row.engines.items()]


def _section(title: str, text: str, entries: Sequence[Entry], columns: Mapping[str, str]) -> Section:
    """Return a table with a row per system, without columns that no system has."""
    names = [name for name in columns if any(measured(system.measures, name) for _, _, system in entries)]
    cells = [[plain(of), plain(who), *(_of(system, name) for name in names)] for of, who, system in entries]
    head = ("Set", "System", *(columns[name] for name in names))
    return Section(title, text, [Table(head, cells)] if names else [])


def _verdicts(rows: Rows, picture: str | None) -> Section:
    """Return the verdict by kind of unanswerable queries, with its picture."""
    cells = [
        [
            *(plain(row.name), plain(engine), plain(verdict.kind), f"{verdict.queries:,}"),
            *(_cell(verdict.measures, name) for name in VERDICT),
        ]
        for row in rows
        for engine in row.engines
        for verdict in row.reports[engine].verdicts
    ]
    head = ("Set", "System", "Nothing fits", "Queries", *(CONFIDENCE_TITLES[name] for name in VERDICT))
    text = "Each kind of queries that nothing fits, beside all queries of the set that have an answer."
    drawn = f"![{VERDICT_PICTURE}]({quote(picture)})" if picture else ""
    return Section("The verdict", text, [Table(head, cells, words=3)], drawn)


def _slices(rows: Rows) -> Section:
    """Return the engines on the queries of each label that a report was requested by."""
    cells = [
        [
            *(plain(row.name), plain(engine), plain(f"{part.name} {part.value}")),
            *(f"{part.queries:,}", f"{part.unanswerable:,}"),
            *(_cell(part.measures, name) for name in SLICED),
        ]
        for row in rows
        for engine in row.engines
        for part in row.reports[engine].slices
    ]
    titles = {NDCG: "nDCG@10", **SHOWN_TITLES, **RANKING, **CONFIDENCE_TITLES}
    head = ("Set", "System", "Queries of", "Queries", "Nothing fits", *(titles[name] for name in SLICED))
    text = "False refusals are those of queries with an answer, false answers those of queries that nothing fits."
    return Section("By kind of query", text, [Table(head, cells, words=3)])


def _thresholds(rows: Rows) -> Section:
    text = (
        "The share of queries that a least probability of the first answer refuses: wrongly where the answer is "
        "there, rightly where nothing fits or the right items are gone from the catalog."
    )
    return Section("Least probability", text, [table for row in rows if (table := _curve(row)).rows])


def _curve(row: QualityRow) -> Table:
    curves = {name: [point for point in row.reports[name].curve if is_in_table(point)] for name in row.engines}
    thresholds = sorted({point.threshold for curve in curves.values() for point in curve})
    cells = [
        [kind, name, *shares]
        for kind, share in REFUSED.items()
        for name, curve in curves.items()
        if set(shares := _shares(curve, thresholds, share)) - {UNKNOWN}
    ]
    return Table(("Refused", "System", *(f"{least:.2f}" for least in thresholds)), cells, title=plain(row.name))


def _shares(
    curve: Sequence[CurvePoint], thresholds: Sequence[float], share: Callable[[CurvePoint], float | None]
) -> list[str]:
    by_threshold = {point.threshold: share(point) for point in curve}
    shares = [by_threshold.get(minimum) for minimum in thresholds]
    return [UNKNOWN if value is None else f"{value:.1%}" for value in shares]


def _latency(rows: Rows) -> Section:
    text = "Milliseconds of each stage, p50 / p95, on the machine that made the report."
    return Section("Latency", text, [table for name in ENGINES if (table := _stages(rows, name)).rows])


def _stages(rows: Rows, engine: str) -> Table:
    systems = {row.name: row.engines[engine] for row in rows if engine in row.engines}
    names = [name for system in systems.values() for name in system.measures if name.startswith(P50)]
    stages = sorted(dict.fromkeys(name.removeprefix(P50) for name in names), key=lambda stage: stage == "total")
    cells = [[plain(of), *(_spent(system, stage) for stage in stages)] for of, system in systems.items()]
    return Table(("Set", *map(plain, stages)), cells if stages else [], words=1, title=engine)


def _spent(system: SystemReport, stage: str) -> str:
    half, maximum = measured(system.measures, P50 + stage), measured(system.measures, P95 + stage)
    return f"{half.value:.2f} / {maximum.value:.2f}" if half and maximum else UNKNOWN


def _tokens(rows: Rows) -> Section:
    engines = [name for name in ENGINES if any(_counted(row, name) for row in rows)]
    counted = [row for row in rows if any(_counted(row, name) for name in engines)]
    cells = [[plain(row.name), *(_count(_counted(row, name)) for name in engines)] for row in counted]
    text = "What a model reads of one answer, on average."
    return Section("Tokens per answer", text, [Table(("Set", *engines), cells, words=1)])


def _counted(row: QualityRow, engine: str) -> Measure | None:
    return measured(row.engines[engine].measures, "tokens") if engine in row.engines else None


def _count(tokens: Measure | None) -> str:
    return UNKNOWN if tokens is None else f"{tokens.value:,.0f} ±{(tokens.high - tokens.low) / 2:,.0f}"


def _ablations(rows: Rows) -> Section:
    text = (
        "What nDCG@10 becomes when a part of the engine is off, as a difference to the whole engine. "
        "Bold: the interval of the difference does not hold zero."
    )
    return Section("Parts", text, [table for name in ENGINES if (table := _parts(rows, name)).rows])


def _parts(rows: Rows, engine: str) -> Table:
    reports = {row.name: row.reports[engine] for row in rows if engine in row.reports}
    off = {name: ablated for name, report in reports.items() if (ablated := _off(report))}
    parts = list(dict.fromkeys(part for ablated in off.values() for part in ablated))
    cells = [
        [plain(name), *(_lost(reports[name], ablated.get(part)) for part in parts)]
        for name, ablated in off.items()
    ]
    return Table(("Set", *map(plain, parts)), cells, words=1, title=engine)


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
