"""The classifier by rules: similarity and keywords; the fallback of the language model."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import ToolscriptError
from toolscript.core.items import MAX_ASSIGNMENTS, AssignedBy, Assignment, Item, valid_assignments
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.core.taxonomy import Classification, Skill, Unclassified
from toolscript.tools.classify.steering import SkillNames, described
from toolscript.tools.model.centroids import UNIT
from toolscript.tools.ports import Classifier

# A name is specific; a description contains much else, and that of a server covers other items too.
NAME, SERVER, DESCRIPTION, SERVER_DESCRIPTION = 1.0, 0.6, 0.4, 0.2

Words = tuple[str, ...]
Stems = tuple[int, ...]

Scores = NDArray[np.float64]

# Keywords add at most this much to the similarity, and half of it at this weight.
MAX_BONUS, HALF_BONUS_AT = 0.5, 1.0
# A shorter word, such as `aws`, has no plural to strip.
MIN_INFLECTED = 4
# The score at which a skill is as likely right as wrong, and how fast that changes.
EVEN_SCORE, SCORE_SCALE = 0.20, 0.10
MAX_CONFIDENCE = 0.97
# A skill is fully trusted when it leads all others by this score; without a lead, this share of the confidence
# above one half remains.
FULL_LEAD, SHARE_WITHOUT_LEAD = 0.15, 0.5
# A second skill must score almost as high as the first.
CLOSE = 0.06
MAX_KEYWORDS_NAMED = 4
LEFT_OUT = "text that does not describe it was left out"

FIRST_PAUSE, MAX_PAUSE = 30.0, 600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keyword:
    """`skills` are the rows of its skills; a keyword of many skills has a low IDF."""

    text: str
    skills: NDArray[np.intp]
    idf: float


@dataclass(frozen=True)
class _Form:
    """A spelling of a keyword: the stems of its words, and the letters that each word must begin with."""

    stems: Stems
    roots: Words
    keyword: Keyword

    @staticmethod
    def of(words: Words, keyword: Keyword) -> "_Form":
        return _Form(_stems(words), tuple(map(_root, words)), keyword)

    def is_at(self, index: int, words: Words, stems: Stems) -> bool:
        end = index + len(self.stems)
        return stems[index:end] == self.stems and all(map(str.startswith, words[index:end], self.roots))


@dataclass(frozen=True)
class KeywordMatch:
    """A keyword in an item's text, and its weight."""

    keyword: Keyword
    weight: float


class KeywordIndex:
    """Keywords, indexed by their first stem, so that an item is compared with few of them."""

    def __init__(self, skills: Sequence[Skill]) -> None:
        # "account" and "accounting" have one stem, and are two keywords: their roots differ.
        rows: dict[tuple[Stems, Words], dict[int, str]] = {}
        for row, skill in enumerate(skills):
            for text in skill.keywords:
                if words := tuple(words_of(text)):
                    rows.setdefault((_stems(words), tuple(map(_root, words))), {}).setdefault(row, text)
        self._by_first: dict[int, list[_Form]] = {}
        for of_rows in rows.values():
            self._add(of_rows, len(skills))

    def matches(self, item: Item) -> list[KeywordMatch]:
        """Return each keyword of the item once, with the weight of its most important field."""
        matches: dict[str, KeywordMatch] = {}
        for text, weight in _fields(item):
            for keyword in self._in(tuple(words_of(text))):
                matches.setdefault(keyword.text, KeywordMatch(keyword, weight * keyword.idf))
        return list(matches.values())

    def _add(self, of_rows: Mapping[int, str], skills: int) -> None:
        idf = math.log1p(skills / len(of_rows)) / math.log1p(skills)
        keyword = Keyword(next(iter(of_rows.values())), np.array(list(of_rows), dtype=np.intp), idf)
        words, joined = tuple(words_of(keyword.text)), tuple(words_of(keyword.text.replace(" ", "")))
        # The keyword "time zone" also matches "timezone".
        for form in {words, joined} if len(joined) == 1 else {words}:
            added = _Form.of(form, keyword)
            self._by_first.setdefault(added.stems[0], []).append(added)

    def _in(self, words: Words) -> Iterator[Keyword]:
        stems = _stems(words)
        for index, first in enumerate(stems):
            for form in self._by_first.get(first, ()):
                if form.is_at(index, words, stems):
                    yield form.keyword


def _fields(item: Item) -> Iterator[tuple[str, float]]:
    """Yield the fields with their weights, the largest first."""
    yield item.name, NAME
    yield item.server, SERVER
    yield item.description, DESCRIPTION
    yield item.server_description, SERVER_DESCRIPTION


def _stems(words: Iterable[str]) -> Stems:
    return tuple(terms_of_word(word)[0] for word in words)


def _root(word: str) -> str:
    """Return the letters that all inflections of a word begin with.

    A stemmer also strips what makes another word: `account` and `accounting`, `structured` and `structural` have
    one stem each. So a keyword is found where its stem and its root are. Other scripts are left to the stemmer.
    """
    if not word.isascii():
        return ""
    if len(word) < MIN_INFLECTED:
        return word
    singular = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    return singular[:-1] if singular[-1] in "ey" else singular


@dataclass(frozen=True)
class Rated:
    """A cleaned item, and a score for each skill, in the order of `Ratings.skills`."""

    item: Item
    was_steering: bool
    likeness: Scores
    scores: Scores
    keywords: Sequence[KeywordMatch]


@dataclass(frozen=True)
class Ratings:
    skills: Sequence[Skill]
    rated: Sequence[Rated]


@dataclass(frozen=True)
class _Categories:
    """Skills prepared for comparison, in order of id. `source` are the skills they were prepared from."""

    source: tuple[Skill, ...]
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
        read = [described(unclassified.item, categories.names) for unclassified in items]
        vectors = await self._vectors_of(items, read)
        likeness = _exact(vectors) @ categories.vectors.T
        rated = [_rated(item, steers, row, categories) for (item, steers), row in zip(read, likeness, strict=True)]
        return Ratings(categories.skills, rated)

    async def _vectors_of(self, items: Sequence[Unclassified], read: Sequence[tuple[Item, bool]]) -> Matrix:
        """Return the vectors; embed items again whose text was cleaned, so that removed text does not count."""
        vectors = np.array([unclassified.vector for unclassified in items], dtype=np.float32)
        vectors = vectors.reshape(len(items), self._embedder.model.dimensions)
        for index, (item, steers) in enumerate(read):
            if steers:
                # Alone: with some models a text's vector depends a little on the texts beside it.
                vectors[index] = (await embed_items(self._embedder, [item]))[0]
        return vectors

    async def _prepared(self, skills: tuple[Skill, ...]) -> _Categories:
        if skills != self._categories.source:
            active = tuple(sorted((skill for skill in skills if skill.is_active), key=lambda skill: skill.id))
            vectors = await self._category_vectors([skill.text for skill in active])
            self._categories = _Categories(
                skills, active, _exact(vectors), KeywordIndex(active), SkillNames(active)
            )
        return self._categories

    async def _category_vectors(self, texts: Sequence[str]) -> Matrix:
        """Embed each skill's text once; drop the vectors of skills that are gone."""
        vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            vectors |= dict(zip(new, await self._embedder.embed_texts(new), strict=True))
        self._vectors = vectors
        rows = np.array([vectors[text] for text in texts], dtype=np.float32)
        return rows.reshape(len(texts), self._embedder.model.dimensions)


def _exact(vectors: Matrix) -> Scores:
    """Round components to multiples of 2^-24: 64 bits hold the sums of their products exactly, so that an item's
    scores do not depend on its batch or on the machine's order of summation."""
    return np.rint(vectors.astype(np.float64) * UNIT) / UNIT


def _rated(item: Item, was_steering: bool, likeness: Scores, categories: _Categories) -> Rated:
    matches = categories.keywords.matches(item)
    weight = np.zeros(len(categories.skills))
    for match in matches:
        weight[match.keyword.skills] += match.weight
    return Rated(item, was_steering, likeness, likeness + MAX_BONUS * weight / (weight + HALF_BONUS_AT), matches)


def _assigned(rated: Rated, skills: Sequence[Skill]) -> tuple[Assignment, ...]:
    best = np.argsort(-rated.scores, kind="stable")[:MAX_ASSIGNMENTS]
    close = [row for row in best if rated.scores[row] >= rated.scores[best[0]] - CLOSE]
    lead = rated.scores[best[0]] - rated.scores[best[1]] if len(best) > 1 else FULL_LEAD
    assignments = [
        Assignment(
            skills[row].id,
            confidence_of(rated.scores[row], lead if row == best[0] else 0.0),
            AssignedBy.RULES,
            _reason(rated, row, skills),
        )
        for row in close
    ]
    return valid_assignments(assignments, frozenset(skill.id for skill in skills))


def confidence_of(score: float, lead: float = FULL_LEAD) -> float:
    """Return the probability that a skill with this score, and this lead over the next one, is right."""
    by_score = min(MAX_CONFIDENCE, 1 / (1 + math.exp((EVEN_SCORE - score) / SCORE_SCALE)))
    trusted = SHARE_WITHOUT_LEAD + (1 - SHARE_WITHOUT_LEAD) * min(1.0, lead / FULL_LEAD)
    return float(0.5 + (by_score - 0.5) * trusted if by_score > 0.5 else by_score)


def _reason(rated: Rated, row: int, skills: Sequence[Skill]) -> str:
    words = [match.keyword.text for match in rated.keywords if row in match.keyword.skills][:MAX_KEYWORDS_NAMED]
    parts = [f"like '{skills[row].name}' ({rated.likeness[row]:.2f})"]
    parts += [f"keywords {', '.join(words)}"] if words else []
    parts += [LEFT_OUT] if rated.was_steering else []
    return "; ".join(parts)


class FallbackClassifier:
    """Uses `second` for items that `first` rejects or leaves unclassified.

    A circuit breaker: after a failure `first` is not called for a while; then one call probes it, and the others
    do not wait for that.
    """

    def __init__(self, first: Classifier, second: Classifier, now: Callable[[], float] = time.monotonic) -> None:
        self._first = first
        self._second = second
        self._now = now
        self._pause = 0.0
        self._resumes_at = 0.0
        self._is_trying = False

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        answers = list(await self._try_first(items, skills))
        unanswered = [row for row, answer in enumerate(answers) if not (answer.assignments or answer.suggestion)]
        if unanswered:
            classifications = await self._second.classify([items[row] for row in unanswered], skills)
            for row, answer in zip(unanswered, classifications, strict=True):
                answers[row] = answer
        return answers

    async def _try_first(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        nothing = [Classification()] * len(items)
        was_failing = self._pause > 0
        if not items or (was_failing and (self._is_trying or self._now() < self._resumes_at)):
            return nothing
        self._is_trying = was_failing
        try:
            answers = await self._first.classify(items, skills)
        except ToolscriptError as error:
            self._pause_after(error)
            return nothing
        finally:
            self._is_trying = False
        self._pause = 0.0
        return answers

    def _pause_after(self, error: ToolscriptError) -> None:
        """Start or double the pause. Concurrent calls that fail together count as one failure."""
        if self._pause and self._now() < self._resumes_at:
            return
        self._pause = min(self._pause * 2, MAX_PAUSE) if self._pause else FIRST_PAUSE
        self._resumes_at = self._now() + self._pause
        logger.warning(
            "rules classify for the next %d seconds: %s", self._pause, error.message, extra={"part": "classifier"}
        )
