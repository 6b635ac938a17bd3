"""How an index of many points compares with one of few: time of its queries, and recall under every filter."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolscript.evaluation.lookalikes import SKILLS, RealPoints, skill_name
from toolscript.model.index import Ask, Candidate, Condition, Where, type_skills
from toolscript.model.items import ItemKind
from toolscript.model.measurements import Latency
from toolscript.model.models import Vector
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.ports import Index

CANDIDATES = 100

Times = dict[tuple[str, str, str], list[float]]
ACTIVE = Condition("is_active", (True,))


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
    """One way to filter: how long both arms and each alone take, and what the large index misses."""

    shape: str
    both: SmallAndLarge
    dense: SmallAndLarge
    words: SmallAndLarge
    recall_at_10: float
    recall_at_100: float


def shapes_for(question: Question, real: RealPoints, chance: np.random.Generator) -> dict[str, Where]:
    """Every shape of filter a search can have, with skills that fit the question and with any."""
    nearest = np.argsort(-(real.vectors @ question.vector))[:200]
    routed = list(dict.fromkeys(real.skills[int(at)] for at in nearest))[:3]
    fitting = Condition("skill_ids", tuple(skill_name(number) for number in routed))
    random = Condition("skill_ids", tuple(skill_name(int(n)) for n in chance.choice(SKILLS, 3, replace=False)))
    tool, prompt = Condition("type", ("tool",)), Condition("type", ("prompt",))
    resource = Condition("type", ("resource",))
    return {
        "no filter": (),
        "active": (ACTIVE,),
        "tools": (tool,),
        "active tools": (ACTIVE, tool),
        "active prompts": (ACTIVE, prompt),
        "active resources": (ACTIVE, resource),
        "three fitting skills": (fitting,),
        "three random skills": (random,),
        "active tools of fitting skills": (ACTIVE, tool, fitting),
        "active tools of random skills": (ACTIVE, tool, random),
        "active prompts of random skills": (ACTIVE, _narrow(ItemKind.PROMPT, random)),
        "active resources of fitting skills": (ACTIVE, _narrow(ItemKind.RESOURCE, fitting)),
    }


def _narrow(kind: ItemKind, skills: Condition) -> Condition:
    return Condition("type_skill", type_skills(kind, [str(skill) for skill in skills.any_of]))


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
            recalls.setdefault(shape, []).append(_recall(found.dense or (), exact.dense or ()))
        on_progress(Progress("measure", done, len(questions)))
    return [_figures(shape, times, pairs) for shape, pairs in recalls.items()]


def _arms(ask: Ask) -> dict[str, Ask]:
    return {"both": ask, "dense": replace(ask, terms=None), "words": replace(ask, vector=None)}


def _figures(shape: str, times: Times, recalls: Sequence[tuple[float, float]]) -> ShapeFigures:
    def pair(arms: str) -> SmallAndLarge:
        small, large = (Latency.of(f"{arms}, {size}", times[shape, arms, size]) for size in ("small", "large"))
        return SmallAndLarge(small, large)

    at_10, at_100 = np.mean(recalls, axis=0)
    return ShapeFigures(
        shape, pair("both"), pair("dense"), pair("words"), round(float(at_10), 4), round(float(at_100), 4)
    )


def _recall(found: Sequence[Candidate], exact: Sequence[Candidate]) -> tuple[float, float]:
    """By score: of points equally near, any will do."""
    return _recall_at(found, exact, 10), _recall_at(found, exact, CANDIDATES)


def _recall_at(found: Sequence[Candidate], exact: Sequence[Candidate], depth: int) -> float:
    if not exact:
        return 1.0
    wanted = exact[:depth]
    least = wanted[-1].score - 1e-6
    return min(1.0, sum(hit.score >= least for hit in found[:depth]) / len(wanted))
