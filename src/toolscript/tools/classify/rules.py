"""The classifier that always answers: how alike an item and a category are, and which keywords the item says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.model.assignments import MOST_ASSIGNMENTS, AssignedBy, Assignment, valid_assignments
from toolscript.model.items import Item
from toolscript.model.models import Matrix, Vector
from toolscript.model.skill_vectors import UNIT
from toolscript.model.skills import Classification, Skill, Unclassified
from toolscript.ports import Embedder
from toolscript.sync.classify.keywords import KeywordIndex, Said
from toolscript.sync.classify.skill_names import SkillNames
from toolscript.sync.classify.steering import described
from toolscript.sync.item_vectors import embed_items

Scores = NDArray[np.float64]

# Keywords count as much as this much likeness at most, and half of it at this weight.
MOST_BONUS, HALF_BONUS_AT = 0.4, 1.0
# The score at which a skill is as likely right as wrong, and how fast that changes.
EVEN_SCORE, SCORE_SCALE = 0.20, 0.10
MOST_CONFIDENCE = 0.95
# A second skill is one that could have been the first.
CLOSE = 0.06
MOST_KEYWORDS_NAMED = 4
LEFT_OUT = "text that does not describe it was left out"


@dataclass(frozen=True)
class Rated:
    """An item as it was read, and a score for each skill, in the order of `Ratings.skills`."""

    item: Item
    was_steering: bool
    likeness: Scores
    scores: Scores
    said: Sequence[Said]


@dataclass(frozen=True)
class Ratings:
    skills: Sequence[Skill]
    rated: Sequence[Rated]


@dataclass(frozen=True)
class _Categories:
    """Skills made ready to be compared with: in the order of their ids, whatever order they came in."""

    asked: tuple[Skill, ...]
    skills: tuple[Skill, ...]
    vectors: Scores
    keywords: KeywordIndex
    names: SkillNames


class RulesClassifier:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}
        self._categories = _Categories(
            (), (), np.zeros((0, embedder.model.dimensions)), KeywordIndex(()), SkillNames()
        )

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        ratings = await self.rate(items, skills)
        return [Classification(_assigned(rated, ratings.skills)) for rated in ratings.rated]

    async def rate(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Ratings:
        categories = await self._prepared(tuple(skills))
        read = [described(one.item, categories.names) for one in items]
        vectors = await self._vectors_of(items, read)
        likeness = _exact(vectors) @ categories.vectors.T
        rated = [_rated(item, steers, row, categories) for (item, steers), row in zip(read, likeness, strict=True)]
        return Ratings(categories.skills, rated)

    async def _vectors_of(self, items: Sequence[Unclassified], read: Sequence[tuple[Item, bool]]) -> Matrix:
        """What was left out of an item must not be in its vector either."""
        vectors = np.array([one.vector for one in items], dtype=np.float32)
        vectors = vectors.reshape(len(items), self._embedder.model.dimensions)
        for at, (item, steers) in enumerate(read):
            if steers:
                # Alone: with some models a text's vector depends a little on the texts beside it.
                vectors[at] = (await embed_items(self._embedder, [item]))[0]
        return vectors

    async def _prepared(self, skills: tuple[Skill, ...]) -> _Categories:
        if skills != self._categories.asked:
            active = tuple(sorted((skill for skill in skills if skill.is_active), key=lambda skill: skill.id))
            vectors = await self._category_vectors([skill.text for skill in active])
            self._categories = _Categories(
                skills, active, _exact(vectors), KeywordIndex(active), SkillNames(active)
            )
        return self._categories

    async def _category_vectors(self, texts: Sequence[str]) -> Matrix:
        """A category's text is embedded once; those of categories that are gone are forgotten."""
        known = {text: self._vectors[text] for text in texts if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known |= dict(zip(new, await self._embedder.embed_passages(new), strict=True))
        self._vectors = known
        rows = np.array([known[text] for text in texts], dtype=np.float32)
        return rows.reshape(len(texts), self._embedder.model.dimensions)


def _exact(vectors: Matrix) -> Scores:
    """Components as multiples of 2^-24: 64 bits hold their products' sums without rounding, so that an item's
    scores are the same in whatever batch it comes and in whatever order a machine adds up."""
    return np.rint(vectors.astype(np.float64) * UNIT) / UNIT


def _rated(item: Item, was_steering: bool, likeness: Scores, categories: _Categories) -> Rated:
    said = categories.keywords.said_by(item)
    weight = np.zeros(len(categories.skills))
    for one in said:
        weight[one.keyword.skills] += one.weight
    return Rated(item, was_steering, likeness, likeness + MOST_BONUS * weight / (weight + HALF_BONUS_AT), said)


def _assigned(rated: Rated, skills: Sequence[Skill]) -> tuple[Assignment, ...]:
    best = np.argsort(-rated.scores, kind="stable")[:MOST_ASSIGNMENTS]
    close = [row for row in best if rated.scores[row] >= rated.scores[best[0]] - CLOSE]
    given = [
        Assignment(skills[row].id, confidence_of(rated.scores[row]), AssignedBy.RULES, _reason(rated, row, skills))
        for row in close
    ]
    return valid_assignments(given, frozenset(skill.id for skill in skills))


def confidence_of(score: float) -> float:
    """How likely a skill with this score is right."""
    return float(min(MOST_CONFIDENCE, 1 / (1 + np.exp((EVEN_SCORE - score) / SCORE_SCALE))))


def _reason(rated: Rated, row: int, skills: Sequence[Skill]) -> str:
    words = [one.keyword.text for one in rated.said if row in one.keyword.skills][:MOST_KEYWORDS_NAMED]
    parts = [f"like '{skills[row].name}' ({rated.likeness[row]:.2f})"]
    parts += [f"says {', '.join(words)}"] if words else []
    parts += [LEFT_OUT] if rated.was_steering else []
    return "; ".join(parts)
