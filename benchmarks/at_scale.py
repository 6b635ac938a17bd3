"""Measurements at scale: times of both sides, times by stage, and recall of documents and of an index."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from benchmarks.measurements import Latency, recall_at
from benchmarks.synthetic import SKILLS, RealPoints, skill_name
from toolscript.core.errors import SetupError
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.model import Ask, Candidate, Vector, Where
from toolscript.core.retrieval.ports import Index
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import ChunkQuery
from toolscript.documents.ports import TenantDocuments
from toolscript.tools.item_stage import where_of
from toolscript.tools.model.answer import Timings, ToolAnswer
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.search import ToolSearch
from toolscript.tools.skill_stage import MAX_SKILLS

CANDIDATES = 100

Work = Callable[[], Awaitable[object]]
Row = dict[str, object]

Times = dict[tuple[str, str, str], list[float]]

WARM_UP = 20


@dataclass
class InTurn:
    """Milliseconds of two sides, by what was asked."""

    names: tuple[str, ...]
    sides: tuple[str, str]
    spent: dict[tuple[str, ...], tuple[list[float], list[float]]] = field(default_factory=dict)

    async def ask(self, row: tuple[str, ...], first: Work, second: Work) -> None:
        """Who comes first changes: the engine has at hand what it has just read."""
        milliseconds = self.spent.setdefault(row, ([], []))
        order = ((0, first), (1, second))
        for side, work in order if len(milliseconds[0]) % 2 else order[::-1]:
            started = time.perf_counter()
            await work()
            milliseconds[side].append((time.perf_counter() - started) * 1000)

    def rows(self) -> list[Row]:
        return [self._row(row, *spent) for row, spent in self.spent.items()]

    def _row(self, row: tuple[str, ...], first: Sequence[float], second: Sequence[float]) -> Row:
        one, other = (Latency.of(name, spent) for name, spent in zip(self.sides, (first, second), strict=True))
        told: Row = dict(zip(self.names, row, strict=True))
        for side in (one, other):
            told |= {f"{side.name} p50": round(side.p50_ms, 2), f"{side.name} p95": round(side.p95_ms, 2)}
        ratios = {
            "p50 ratio": round(one.p50_ms / other.p50_ms, 3),
            "p95 ratio": round(one.p95_ms / other.p95_ms, 3),
        }
        return told | ratios | {"of": one.count}


@dataclass
class StageTimes:
    """Whoever searches says what it is doing, and this how long it took."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def span(self, name: str, **_: str | float | bool) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.milliseconds.setdefault(name.removeprefix("search."), []).append(spent)

    def row(self) -> Row:
        return {stage: round(Latency.of(stage, spent).p50_ms, 2) for stage, spent in self.milliseconds.items()}


@dataclass
class Recalls:
    """What the dense arm finds of what an exact search finds, by what was asked; of a question with an answer."""

    names: tuple[str, ...]
    shares: dict[tuple[str, ...], list[tuple[float, float]]] = field(default_factory=dict)

    async def ask(
        self, row: tuple[str, ...], documents: TenantDocuments, vector: Vector, filters: Filters
    ) -> None:
        ask = ChunkQuery(vector, None, filters, CANDIDATES)
        found = (await documents.search(ask)).dense or ()
        exact = (await documents.search(ChunkQuery(vector, None, filters, CANDIDATES, exact=True))).dense or ()
        listed = self.shares.setdefault(row, [])
        if exact:
            listed.append((recall_at(found, exact, 10), recall_at(found, exact, CANDIDATES)))

    def rows(self) -> list[Row]:
        return [
            dict(zip(self.names, row, strict=True))
            | {
                "recall@10": round(fmean(ten for ten, _ in shares), 4),
                "recall@100": round(fmean(hundred for _, hundred in shares), 4),
                "of": len(shares),
            }
            for row, shares in self.shares.items()
            if shares
        ]


@dataclass(frozen=True)
class Question:
    vector: Vector
    terms: Mapping[int, float]


@dataclass(frozen=True)
class SmallAndLarge:
    small: Latency
    large: Latency

    @property
    def p95_ratio(self) -> float:
        return round(self.large.p95_ms / self.small.p95_ms, 2)


@dataclass(frozen=True)
class ShapeStats:
    """One way to filter: how long both arms and each alone take, and what the large index misses.

    Recall is a mean over the `recall_questions` that have an answer at all, None where none has.
    """

    shape: str
    both: SmallAndLarge
    dense: SmallAndLarge
    words: SmallAndLarge
    recall_at_10: float | None
    recall_at_100: float | None
    recall_questions: int


def shapes_for(question: Question, real: RealPoints, chance: np.random.Generator) -> dict[str, Where]:
    """Every shape of filter a search can have: each kind, with skills that fit the question and with any."""
    nearest = np.argsort(-(real.vectors @ question.vector))[:1_000]
    fitting = list(dict.fromkeys(skill_name(real.skills[int(at)]) for at in nearest))
    any_order = [skill_name(int(number)) for number in chance.permutation(SKILLS)]
    by_skills = {
        "": (),
        " of one skill": any_order[:1],
        f" of {MAX_SKILLS} fitting skills": (fitting + any_order)[:MAX_SKILLS],
        f" of {MAX_SKILLS} random skills": any_order[:MAX_SKILLS],
        " of most skills": any_order[: SKILLS - 2],
    }
    kinds: dict[str, ItemKind | None] = {"all": None, **{f"{kind}s": kind for kind in ItemKind}}
    return {
        f"{name}{of}": where_of(kind, skills) for name, kind in kinds.items() for of, skills in by_skills.items()
    }


async def measure(
    small: Index,
    large: Index,
    questions: Sequence[Question],
    real: RealPoints,
    on_progress: OnProgress = silent,
) -> list[ShapeStats]:
    """Asks both indexes in turn, both arms at once as a search does and each alone; then searches exactly."""
    chance = np.random.default_rng(3)
    times: Times = {}
    recalls: dict[str, list[tuple[float, float]]] = {}
    for done, question in enumerate(questions, 1):
        for shape, where in shapes_for(question, real, chance).items():
            ask = Ask(question.vector, question.terms, where, CANDIDATES)
            for arms, context in _arms(ask).items():
                for size, index in (("small", small), ("large", large)):
                    started = time.perf_counter()
                    await index.search(context)
                    times.setdefault((shape, arms, size), []).append((time.perf_counter() - started) * 1000)
            found = await large.search(replace(ask, terms=None))
            exact = await large.search(replace(ask, terms=None, exact=True))
            recalls.setdefault(shape, []).extend(_recall(found.dense or (), exact.dense or ()))
        on_progress(Progress("measure", done, len(questions)))
    return [_figures(shape, times, pairs) for shape, pairs in recalls.items()]


def _arms(ask: Ask) -> dict[str, Ask]:
    return {"both": ask, "dense": replace(ask, terms=None), "words": replace(ask, vector=None)}


def _figures(shape: str, times: Times, recalls: Sequence[tuple[float, float]]) -> ShapeStats:
    def pair(arms: str) -> SmallAndLarge:
        small, large = (Latency.of(f"{arms}, {size}", times[shape, arms, size]) for size in ("small", "large"))
        return SmallAndLarge(small, large)

    at_10, at_100 = (round(fmean(values), 4) for values in zip(*recalls, strict=True)) if recalls else (None, None)
    return ShapeStats(shape, pair("both"), pair("dense"), pair("words"), at_10, at_100, len(recalls))


def _recall(found: Sequence[Candidate], exact: Sequence[Candidate]) -> list[tuple[float, float]]:
    """Of a question without an answer, none."""
    return [(recall_at(found, exact, 10), recall_at(found, exact, CANDIDATES))] if exact else []


@dataclass(frozen=True)
class StagesAtScale:
    """`routed` counts the searches in each index that were really routed by skills, of so many `searches`."""

    stages: Mapping[str, SmallAndLarge]
    routed: Mapping[str, int]
    searches: int


async def measure_stages(
    small: ToolSearch, large: ToolSearch, texts: Sequence[str], on_progress: OnProgress = silent
) -> StagesAtScale:
    """Each text is new to both, so nothing helps but what helps in real life."""
    times: dict[tuple[str, str], list[float]] = {}
    routed = {"small": 0, "large": 0}
    for done, text in enumerate(texts):
        query = ToolQuery(text, threshold=0.0, strategy=Strategy.HIERARCHICAL, include_schemas=False)
        for size, search in (("small", small), ("large", large)):
            answer = _whole(await search.search(query))
            if done >= WARM_UP:
                routed[size] += answer.strategy_used is Strategy.HIERARCHICAL
                for stage, milliseconds in _stages(answer.timings).items():
                    times.setdefault((stage, size), []).append(milliseconds)
        on_progress(Progress("stages", done + 1, len(texts)))
    stages = {
        stage: SmallAndLarge(*(Latency.of(size, times[stage, size]) for size in ("small", "large")))
        for stage in dict.fromkeys(stage for stage, _ in times)
    }
    return StagesAtScale(stages, routed, max(0, len(texts) - WARM_UP))


def _whole(answer: ToolAnswer) -> ToolAnswer:
    """A search without one of its parts is quick, and says nothing of the others."""
    if answer.degraded:
        raise SetupError(
            f"a search was degraded, without {', '.join(answer.degraded)}: its times are no measure",
            hint="run `toolscript doctor`, and measure when nothing else does",
        )
    return answer


def _stages(spent: Timings) -> dict[str, float]:
    return {
        "skills": spent.skill_search,
        "items": spent.tool_search - spent.ranking,
        "both": spent.skill_search + spent.tool_search - spent.ranking,
    }
