"""Reports of several sets and both engines, put together: a row for each set."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolscript.errors import InvalidRequest
from toolscript.model.judged import EvalReport, Measure, SystemReport, SystemRole
from toolscript.model.queries import Strategy

SERVICE = "service"
ENGINES = ("gateway", SERVICE)
BASELINES = ("BM25", "dense", "RRF", "z-score")
NDCG = "ndcg@10"
UNNAMED = "unnamed"


class Setup(NamedTuple):
    """Engines are compared only where all of this is the same."""

    name: str
    model: str
    items: int
    queries: int


@dataclass(frozen=True)
class QualityRow:
    """One set, and the report of each engine that was asked; `routed` are those of the service going by skills."""

    name: str
    setup: Setup
    reports: Mapping[str, EvalReport]
    routed: Mapping[Strategy, EvalReport] = field(default_factory=dict)

    @property
    def engines(self) -> dict[str, SystemReport]:
        """By name, in the same order in every row."""
        return {name: self.reports[name].systems[0] for name in ENGINES if name in self.reports}

    @property
    def baselines(self) -> dict[str, SystemReport]:
        """The same catalog and model give the same baselines: those of the first report will do."""
        plain = {
            system.system: system
            for report in reversed(list(self.reports.values()))
            for system in report.systems
            if system.role is SystemRole.BASELINE
        }
        return {name: plain[name] for name in BASELINES if name in plain}

    @property
    def best_baseline(self) -> SystemReport | None:
        known = [system for system in self.baselines.values() if measured(system, NDCG)]
        return max(known, key=lambda system: system.measures[NDCG].value, default=None)


def rows_of(reports: Sequence[EvalReport]) -> list[QualityRow]:
    """In the order given; an engine that was judged twice in the same way is refused."""
    found: dict[Setup, dict[str, EvalReport]] = {}
    for report in reports:
        if report.strategy is Strategy.DIRECT:
            setup = _setup(report)
            of_set = found.setdefault(setup, {})
            _check(report, setup, of_set)
            of_set[report.engine] = report
    routed = _routed(reports, found)
    return [
        QualityRow(_label(setup, list(found)), setup, of_set, routed.get(setup, {}))
        for setup, of_set in found.items()
    ]


def _setup(report: EvalReport) -> Setup:
    return Setup(_set_name(report), one_line(report.model), report.items, report.queries)


def _routed(
    reports: Sequence[EvalReport], direct: Mapping[Setup, Mapping[str, EvalReport]]
) -> dict[Setup, dict[Strategy, EvalReport]]:
    """What skills do to a search is seen beside the same search without them."""
    found: dict[Setup, dict[Strategy, EvalReport]] = {}
    for report in reports:
        if report.strategy is Strategy.DIRECT:
            continue
        setup, how = _setup(report), f"the {report.strategy} search of the service"
        if report.engine != SERVICE or SERVICE not in direct.get(setup, {}):
            raise InvalidRequest(
                f"there is nothing to compare {how} on {setup.name} with",
                hint="also give the report of `toolscript eval --engine service --strategy direct` on the same",
            )
        of_set = found.setdefault(setup, {})
        if report.strategy in of_set:
            raise InvalidRequest(f"two reports are about {how} on {setup.name}", hint="give one of them")
        of_set[report.strategy] = report
    return found


def measured(system: SystemReport, name: str) -> Measure | None:
    """None also where there is no such figure, as there is no AUROC when all queries are alike."""
    found = system.measures.get(name)
    return found if found and all(map(math.isfinite, (found.value, found.low, found.high))) else None


def one_line(text: str) -> str:
    """Without what no page can hold, breaks a line, or turns the direction of writing."""
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
        raise InvalidRequest(
            f"two reports tell how the {report.engine} does on {setup.name}", hint="give one of them"
        )


def _label(setup: Setup, setups: Sequence[Setup]) -> str:
    """The name of the set, and what tells it from other rows of that name."""
    alike = [one for one in setups if one.name == setup.name]
    differs = [len(set(values)) > 1 for values in zip(*alike, strict=True)]
    told = (setup.name, setup.model, f"{setup.items:,} items", f"{setup.queries:,} queries")
    facts = [fact for fact, needed in zip(told, differs, strict=True) if needed]
    return f"{setup.name} ({', '.join(facts)})" if facts else setup.name
