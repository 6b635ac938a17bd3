"""Many points that look like real ones: a real item's vector moved a little, its words partly exchanged.

Uniform noise would not do: in many dimensions all of it is equally far away, and no index finds its way in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.model.index import Point, Terms, type_skills
from toolscript.model.items import ItemKind
from toolscript.model.models import Matrix
from toolscript.model.skills import skill_point_id

NOISE = 0.4
EXCHANGED = 0.2
SKILLS = 30
KINDS = tuple(ItemKind)
KIND_SHARES = (0.93, 0.05, 0.02)
ACTIVE_SHARE = 0.9


@dataclass(frozen=True)
class RealPoints:
    """What the lookalikes are made from. `skills` is each real item's own skill, by what it is near to."""

    vectors: Matrix
    terms: Sequence[Terms]
    skills: Sequence[int]


def real_points(vectors: Matrix, terms: Sequence[Terms], seed: int = 1) -> RealPoints:
    chance = np.random.default_rng(seed)
    anchors = vectors[chance.choice(len(vectors), SKILLS, replace=len(vectors) < SKILLS)]
    return RealPoints(vectors, terms, (vectors @ anchors.T).argmax(axis=1).tolist())


def skill_name(number: int) -> str:
    return f"skill_{number}"


def skill_points(real: RealPoints) -> list[Point]:
    """A point per skill, the mean of the real items in it."""
    numbers = np.array(real.skills)
    return [_skill_point(number, real.vectors[numbers == number]) for number in sorted(set(real.skills))]


def _skill_point(number: int, vectors: Matrix) -> Point:
    mean = vectors.mean(axis=0)
    name = skill_name(number)
    fields = {"id": name, "name": name, "description": "", "tool_count": len(vectors), "is_active": True}
    return Point(skill_point_id(name), 1, np.asarray(mean / np.linalg.norm(mean)), {}, fields)


def lookalikes(real: RealPoints, count: int, batch: int, seed: int = 2) -> Iterator[list[Point]]:
    """Points 1 to `count`, the same ones for the same seed."""
    chance = np.random.default_rng(seed)
    for start in range(0, count, batch):
        ids = range(start + 1, min(start + batch, count) + 1)
        origins = chance.integers(len(real.vectors), size=len(ids))
        vectors = moved(real.vectors[origins], chance)
        yield [
            _point(real, id_, int(origin), vector, chance)
            for id_, origin, vector in zip(ids, origins, vectors, strict=True)
        ]


def moved(vectors: Matrix, chance: np.random.Generator) -> Matrix:
    noise = chance.standard_normal(vectors.shape, dtype=np.float32)
    noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    away = vectors + noise
    return np.asarray(away / np.linalg.norm(away, axis=1, keepdims=True), dtype=np.float32)


def _point(real: RealPoints, id_: int, origin: int, vector: Matrix, chance: np.random.Generator) -> Point:
    extra = chance.integers(SKILLS, size=int(chance.integers(0, 3)))
    skills = dict.fromkeys([real.skills[origin], *extra.tolist()])
    kind = KINDS[int(chance.choice(len(KINDS), p=KIND_SHARES))]
    names = [skill_name(number) for number in skills]
    fields = {
        "type": kind.value,
        "is_active": bool(chance.random() < ACTIVE_SHARE),
        "skill_ids": names,
        "type_skill": type_skills(kind, names),
        "server": f"server {origin % 997}",
        "name": f"item_{id_}",
        "description": "A generated item that looks like a real one.",
    }
    other = real.terms[int(chance.integers(len(real.terms)))]
    return Point(id_, id_, vector, _exchanged(real.terms[origin], other, chance), fields)


def _exchanged(terms: Terms, others: Terms, chance: np.random.Generator) -> dict[int, float]:
    kept = chance.random(len(terms)) >= EXCHANGED
    taken = chance.random(len(others)) < EXCHANGED
    mixed = {term: weight for (term, weight), take in zip(others.items(), taken, strict=True) if take}
    return mixed | {term: weight for (term, weight), keep in zip(terms.items(), kept, strict=True) if keep}
