"""Measurements at scale: paired latencies, latency by stage, and recall of documents and of an index."""

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
from toolscript.core.retrieval.model import Candidate, IndexQuery, Vector, Where
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
class PairedTimes:
    """Milliseconds of two sides, by kind of query."""

    names: tuple[str, ...]
    sides: tuple[str, str]
    spent: dict[tuple[str, ...], tuple[list[float], list[float]]] = field(default_factory=dict)

    async def measure(self, row: tuple[str, ...], first: Work, second: Work) -> None:
        """Run both sides in alternating order: the second one finds the engine's caches warm."""
        milliseconds = self.spent.setdefault(row, ([], []))
        order = ((0, first), (1, second))
        for side, work in order if len(milliseconds[0]) % 2 else order[::-1]:
            started = time.perf_counter()
            await work()
            milliseconds[side].append((time.perf_counter() - started) * 1000)

    def rows(self) -> list[Row]:
        return [self._row(row, *spent) for row, spent in self.spent.items()]

    def _row(self, row: tuple[str, ...], first: Sequence[float], second: Sequence[float]) -> Row:
        first_side, second_side = (
            Latency.of(name, spent) for name, spent in zip(self.sides, (first, second), strict=True)
        )
        result: Row = dict(zip(self.names, row, strict=True))
        for side in (first_side, second_side):
            result |= {f"{side.name} p50": round(side.p50_ms, 2), f"{side.name} p95": round(side.p95_ms, 2)}
        ratios = {
            "p50 ratio": round(first_side.p50_ms / second_side.p50_ms, 3),
            "p95 ratio": round(first_side.p95_ms / second_side.p95_ms, 3),
        }
        return result | ratios | {"of": first_side.count}


@dataclass
class StageTimes:
    """Spans that record how long each stage of a search took."""

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
    """Recall of dense retrieval against an exact search, by kind of query, for queries with results."""

    names: tuple[str, ...]
    shares: dict[tuple[str, ...], list[tuple[float, float]]] = field(default_factory=dict)

    async def measure(
        self, row: tuple[str, ...], documents: TenantDocuments, vector: Vector, filters: Filters
    ) -> None:
        query = ChunkQuery(vector, None, filters, CANDIDATES)
        hits = (await documents.search(query)).dense or ()
        exact = (await documents.search(ChunkQuery(vector, None, filters, CANDIDATES, exact=True))).dense or ()
        listed = self.shares.setdefault(row, [])
        if exact:
            listed.append((recall_at(hits, exact, 10), recall_at(hits, exact, CANDIDATES)))

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
    """One shape of filter: latency of both retrievers together and of each alone, and recall of the large index.

    Recall is the mean over the `recall_questions` that have results, None if there are none.
    """

    shape: str
    both: SmallAndLarge
    dense: SmallAndLarge
    words: SmallAndLarge
    recall_at_10: float | None
    recall_at_100: float | None
    recall_questions: int


def shapes_for(question: Question, real: RealPoints, rng: np.random.Generator) -> dict[str, Where]:
    """Return every shape of filter: each kind of item, with skills near the query and with random ones."""
    nearest = np.argsort(-(real.vectors @ question.vector))[:1_000]
    fitting = list(dict.fromkeys(skill_name(real.skills[int(position)]) for position in nearest))
    any_order = [skill_name(int(number)) for number in rng.permutation(SKILLS)]
    by_skills = {
        "": (),
        " of one skill": any_order[:1],
        f" of {MAX_SKILLS} fitting skills": (fitting + any_order)[:MAX_SKILLS],
        f" of {MAX_SKILLS} random skills": any_order[:MAX_SKILLS],
        " of most skills": any_order[: SKILLS - 2],
    }
    kinds: dict[str, ItemKind | None] = {"all": None, **{f"{kind}s": kind for kind in ItemKind}}
    return {
        f"{name}{suffix}": where_of(kind, skills)
        for name, kind in kinds.items()
        for suffix, skills in by_skills.items()
    }


async def measure(
    small: Index,
    large: Index,
    questions: Sequence[Question],
    real: RealPoints,
    on_progress: OnProgress = silent,
) -> list[ShapeStats]:
    """Query both indexes in turn, with both retrievers as a search does and with each alone; then exactly."""
    rng = np.random.default_rng(3)
    times: Times = {}
    recalls: dict[str, list[tuple[float, float]]] = {}
    for done, question in enumerate(questions, 1):
        for shape, where in shapes_for(question, real, rng).items():
            ask = IndexQuery(question.vector, question.terms, where, CANDIDATES)
            for retrievers, query in _retrievers(ask).items():
                for size, index in (("small", small), ("large", large)):
                    started = time.perf_counter()
                    await index.search(query)
                    times.setdefault((shape, retrievers, size), []).append((time.perf_counter() - started) * 1000)
            hits = await large.search(replace(ask, terms=None))
            exact = await large.search(replace(ask, terms=None, exact=True))
            recalls.setdefault(shape, []).extend(_recall(hits.dense or (), exact.dense or ()))
        on_progress(Progress("measure", done, len(questions)))
    return [_stats_of(shape, times, pairs) for shape, pairs in recalls.items()]


def _retrievers(ask: IndexQuery) -> dict[str, IndexQuery]:
    return {"both": ask, "dense": replace(ask, terms=None), "words": replace(ask, vector=None)}


def _stats_of(shape: str, times: Times, recalls: Sequence[tuple[float, float]]) -> ShapeStats:
    def pair(retrievers: str) -> SmallAndLarge:
        small, large = (
            Latency.of(f"{retrievers}, {size}", times[shape, retrievers, size]) for size in ("small", "large")
        )
        return SmallAndLarge(small, large)

    at_10, at_100 = (round(fmean(values), 4) for values in zip(*recalls, strict=True)) if recalls else (None, None)
    return ShapeStats(shape, pair("both"), pair("dense"), pair("words"), at_10, at_100, len(recalls))


def _recall(hits: Sequence[Candidate], exact: Sequence[Candidate]) -> list[tuple[float, float]]:
    """Return the recall, or nothing if the exact search has no results."""
    return [(recall_at(hits, exact, 10), recall_at(hits, exact, CANDIDATES))] if exact else []


@dataclass(frozen=True)
class StagesAtScale:
    """`routed` counts the `searches` in each index that were actually routed by skills."""

    stages: Mapping[str, SmallAndLarge]
    routed: Mapping[str, int]
    searches: int


async def measure_stages(
    small: ToolSearch, large: ToolSearch, texts: Sequence[str], on_progress: OnProgress = silent
) -> StagesAtScale:
    """Measure stages of both. Each text is new to both, so that caches help no more than in production."""
    times: dict[tuple[str, str], list[float]] = {}
    routed = {"small": 0, "large": 0}
    for done, text in enumerate(texts):
        query = ToolQuery(text, threshold=0.0, strategy=Strategy.HIERARCHICAL, include_schemas=False)
        for size, search in (("small", small), ("large", large)):
            answer = _require_complete(await search.search(query))
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


def _require_complete(answer: ToolAnswer) -> ToolAnswer:
    """Return the answer. Raise if it is degraded: its latency would be meaningless."""
    if answer.degraded:
        raise SetupError(
            f"a search was degraded, without {', '.join(answer.degraded)}: its latency is meaningless",
            hint="run `toolscript doctor`, and measure on an idle machine",
        )
    return answer


def _stages(spent: Timings) -> dict[str, float]:
    return {
        "skills": spent.skill_search,
        "items": spent.tool_search - spent.ranking,
        "both": spent.skill_search + spent.tool_search - spent.ranking,
    }
