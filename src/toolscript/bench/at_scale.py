"""How an index of many points compares with one of few: time of its queries, and recall under every filter."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from toolscript.evaluation.lookalikes import SKILLS, RealPoints, skill_name
from toolscript.evaluation.nearest import recall_at
from toolscript.model.index import Ask, Candidate, Where
from toolscript.model.items import ItemKind
from toolscript.model.measurements import Latency
from toolscript.model.models import Vector
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import Index
from toolscript.search.item_stage import where_of
from toolscript.search.skill_matching import MOST_SKILLS

CANDIDATES = 100

Times = dict[tuple[str, str, str], list[float]]


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
class ShapeFigures:
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
        f" of {MOST_SKILLS} fitting skills": (fitting + any_order)[:MOST_SKILLS],
        f" of {MOST_SKILLS} random skills": any_order[:MOST_SKILLS],
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
) -> list[ShapeFigures]:
    """Asks both indexes in turn, both arms at once as a search does and each alone; then searches exactly."""
    chance = np.random.default_rng(3)
    times: Times = {}
    recalls: dict[str, list[tuple[float, float]]] = {}
    for done, question in enumerate(questions, 1):
        for shape, where in shapes_for(question, real, chance).items():
            ask = Ask(question.vector, question.terms, where, CANDIDATES)
            for arms, asked in _arms(ask).items():
                for size, index in (("small", small), ("large", large)):
                    started = time.perf_counter()
                    await index.search(asked)
                    times.setdefault((shape, arms, size), []).append((time.perf_counter() - started) * 1000)
            found = await large.search(replace(ask, terms=None))
            exact = await large.search(replace(ask, terms=None, exact=True))
            recalls.setdefault(shape, []).extend(_recall(found.dense or (), exact.dense or ()))
        on_progress(Progress("measure", done, len(questions)))
    return [_figures(shape, times, pairs) for shape, pairs in recalls.items()]


def _arms(ask: Ask) -> dict[str, Ask]:
    return {"both": ask, "dense": replace(ask, terms=None), "words": replace(ask, vector=None)}


def _figures(shape: str, times: Times, recalls: Sequence[tuple[float, float]]) -> ShapeFigures:
    def pair(arms: str) -> SmallAndLarge:
        small, large = (Latency.of(f"{arms}, {size}", times[shape, arms, size]) for size in ("small", "large"))
        return SmallAndLarge(small, large)

    at_10, at_100 = (round(fmean(values), 4) for values in zip(*recalls, strict=True)) if recalls else (None, None)
    return ShapeFigures(shape, pair("both"), pair("dense"), pair("words"), at_10, at_100, len(recalls))


def _recall(found: Sequence[Candidate], exact: Sequence[Candidate]) -> list[tuple[float, float]]:
    """Of a question without an answer, none."""
    return [(recall_at(found, exact, 10), recall_at(found, exact, CANDIDATES))] if exact else []
