"""Items in memory, as arrays: every score of every item in about a millisecond; spelling and domains."""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from toolscript.core.item_text import item_words, terms_of_words
from toolscript.core.items import Item, ItemKind, tool_id
from toolscript.core.retrieval.model import Candidate, Candidates, Matrix, Vector
from toolscript.core.retrieval.request import strip_literals
from toolscript.core.retrieval.rerank import Features
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, without_stop_words, words_of

WEIGHTS = {"name": 3.0, "server": 2.0, "description": 1.0}
LEAST = 2.0


Keyword = frozenset[int]

Scores = NDArray[np.float64]
Rows = NDArray[np.int64]

MIN_CORRECTED = 4
NEAREST_WORD = 0.82
SWAPPED_LETTERS = 0.75
MAX_NAME_ASKED = 5
NEAREST_NAME = 86.0
ALL_BUT_EXACT, EXACT_BUT_FOR_CASE = 0.99, 0.995
MAX_NAMES = 8
MAX_CORRECTED = 4


def domain_of(fields: Mapping[str, list[str]]) -> str:
    """The domain most of whose keywords an item with these words has; empty when none stands out."""
    names, by_stem = _domains()
    stems = {field: frozenset(terms_of_word(word)[0] for word in fields[field]) for field in WEIGHTS}
    scores = [0.0] * len(names)
    for stem in frozenset().union(*stems.values()):
        for domain, keyword in by_stem.get(stem, ()):
            scores[domain] += max((WEIGHTS[field] for field in WEIGHTS if keyword <= stems[field]), default=0.0)
    best = max(range(len(names)), key=scores.__getitem__)
    return names[best] if scores[best] >= LEAST else ""


@cache
def _domains() -> tuple[tuple[str, ...], Mapping[int, Sequence[tuple[int, Keyword]]]]:
    """The domains' names, and their keywords by one stem of each: an item is held against few of them."""
    skills = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))
    by_stem: dict[int, list[tuple[int, Keyword]]] = {}
    for domain, skill in enumerate(skills):
        for words in skill["keywords"]:
            keyword = frozenset(terms_of_word(word)[0] for word in words_of(words))
            by_stem.setdefault(min(keyword), []).append((domain, keyword))
    return tuple(str(skill["name"]).lower() for skill in skills), by_stem


@dataclass(frozen=True)
class Analysed:
    """An item as the word arm sees it: its terms with their weights, and its words to spell a query by."""

    terms: NDArray[np.uint32]
    weights: NDArray[np.float32]
    words: tuple[str, ...]


def analyse(item: Item) -> Analysed:
    fields = item_words(item)
    terms = terms_of_words(item, fields)
    return Analysed(
        np.fromiter(terms.keys(), np.uint32, len(terms)),
        np.fromiter(terms.values(), np.float32, len(terms)),
        tuple({word for words in fields.values() for word in words}),
    )


def squashed(name: str) -> str:
    """A name without what people get wrong in it: case, `_`, `-`, `.` and spaces."""
    return "".join(char for char in name.casefold() if char.isalnum())


def name_parts(name: str) -> frozenset[str]:
    """The words a name is made of: `run`, `shell` and `command` of `runShell_command`."""
    return frozenset(split_identifier(name).casefold().split())


class LocalIndex:
    """Never changes: a new state of the world is a new index.

    `vectors` has a row per item; a row of zeros is an item that has not been embedded yet.
    """

    def __init__(self, items: Sequence[Item], analysed: Sequence[Analysed], vectors: Matrix | None = None) -> None:
        self.items = tuple(items)
        self._analysed = tuple(analysed)
        self._vectors = vectors
        self._words_of_row: dict[int, Mapping[str, list[str]]] = {}
        self._matching: dict[Hashable, Rows] = {}
        self._traits: dict[int, Features] = {}
        self._domains: dict[int, str] = {}
        self._places, self._rows, self._weights = _postings(analysed)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def model_is_used(self) -> bool:
        return self._vectors is not None and bool(self._vectors.any())

    def with_vectors(self, vectors: Matrix) -> "LocalIndex":
        """The same items and words, which need not be looked at again."""
        other = copy(self)
        vars(other).update(_vectors=vectors)
        for of_vectors in ("model_is_used", "is_embedded"):
            vars(other).pop(of_vectors, None)
        return other

    def rows(self, kind: ItemKind | None) -> Rows:
        return self._rows_of_kind[kind]

    @cached_property
    def _rows_of_kind(self) -> Mapping[ItemKind | None, Rows]:
        kinds = np.array([item.kind.value for item in self.items], dtype=object)
        of_kind: dict[ItemKind | None, Rows] = {kind: np.flatnonzero(kinds == kind.value) for kind in ItemKind}
        return {**of_kind, None: np.arange(len(self.items))}

    def similarities(self, vectors: Matrix) -> Matrix | None:
        """The cosines with every item, a row per vector; None where nothing has been embedded yet."""
        if self._vectors is None or not self.model_is_used:
            return None
        # All at once: what takes time is to read the items' vectors.
        return np.ascontiguousarray((self._vectors @ vectors.T).T)

    @cached_property
    def is_embedded(self) -> NDArray[np.bool_]:
        assert self._vectors is not None  # noqa: S101
        return np.asarray(self._vectors.any(axis=1))

    def candidates(
        self, vectors: Sequence[Vector] | None, asked: Sequence[Mapping[int, float]], rows: Rows, limit: int
    ) -> list[Candidates]:
        """For each part of a request the best rows of either arm: what an engine would answer, and exact."""
        cosines = self.similarities(np.array(vectors)) if vectors else None
        embedded = rows if cosines is None else rows[self.is_embedded[rows]]
        return [
            Candidates(
                None if cosines is None or not len(embedded) else _best(cosines[index], embedded, limit),
                self._best_by_words(terms, rows, limit),
                len(self.items),
                self._shares(terms),
            )
            for index, terms in enumerate(asked)
        ]

    def _best_by_words(self, terms: Mapping[int, float], rows: Rows, limit: int) -> list[Candidate]:
        scores = self.word_scores(terms)
        return _best(scores, rows[scores[rows] > 0], limit)

    def _shares(self, terms: Iterable[int]) -> Mapping[int, float]:
        return {term: len(self._postings_of(term)[0]) / max(1, len(self.items)) for term in terms}

    def features(self, row: int) -> Features:
        if row not in self._traits:
            item = self.items[row]
            # Surface forms among the stems do no harm: no stem that is asked for is one of them.
            terms = frozenset(self._analysed[row].terms.tolist())
            self._traits[row] = Features("" if item.is_document else item.name, terms)
        return self._traits[row]

    def idf(self, term: int) -> float:
        return self._idf(len(self.rows_with(term)))

    def rows_with(self, term: int) -> Rows:
        return self._postings_of(term)[0]

    def _idf(self, found: int) -> float:
        return math.log(1 + (len(self.items) - found + 0.5) / (found + 0.5))

    def knows(self, term: int) -> bool:
        return term in self._places

    def word_scores(self, terms: Mapping[int, float]) -> Scores:
        """The BM25F score of every item."""
        scores = np.zeros(len(self.items))
        for term, weight in terms.items():
            rows, weights = self._postings_of(term)
            scores[rows] += weight * self._idf(len(rows)) * weights
        return scores

    def _postings_of(self, term: int) -> tuple[Rows, NDArray[np.float32]]:
        place = self._places.get(term, slice(0, 0))
        return self._rows[place], self._weights[place]

    @cached_property
    def words_by_length(self) -> Mapping[int, Sequence[str]]:
        """Every word of every item, in order, to spell a query by."""
        by_length: dict[int, list[str]] = {}
        for word in sorted({word for analysed in self._analysed for word in analysed.words}):
            by_length.setdefault(len(word), []).append(word)
        return by_length

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(squashed(item.name) for item in self.items)

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        return tuple(squashed(tool_id(item.server, item.name)) for item in self.items)

    def rows_named(self, name: str, *, of_any_case: bool = False) -> list[int]:
        """The items that have this name, alone or with the server's before it."""
        return self._rows_of_any_case.get(name.casefold(), []) if of_any_case else self._rows_by_name.get(name, [])

    @cached_property
    def _rows_by_name(self) -> Mapping[str, list[int]]:
        return self._rows_by(str)

    @cached_property
    def _rows_of_any_case(self) -> Mapping[str, list[int]]:
        return self._rows_by(str.casefold)

    def _rows_by(self, key: Callable[[str], str]) -> Mapping[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            for name in (item.name, tool_id(item.server, item.name)):
                rows.setdefault(key(name), []).append(row)
        return rows

    @cached_property
    def name_parts(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """The words of each item's name, and of its server's."""
        return tuple((name_parts(item.name), name_parts(item.server)) for item in self.items)

    @cached_property
    def place_by_name(self) -> Rows:
        """Where each item stands in the order of names, to break ties by."""
        order = sorted(
            range(len(self.items)), key=lambda row: tool_id(self.items[row].server, self.items[row].name)
        )
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places

    def rows_matching(self, key: Hashable, holds: Callable[[frozenset[str], frozenset[str]], bool]) -> Rows:
        """The items for the words of whose name and server's this holds; looked for once per key."""
        if key not in self._matching:
            self._matching[key] = np.flatnonzero([holds(name, server) for name, server in self.name_parts])
        return self._matching[key]

    def words(self, row: int) -> Mapping[str, list[str]]:
        """The words of an item, field by field."""
        if row not in self._words_of_row:
            self._words_of_row[row] = item_words(self.items[row])
        return self._words_of_row[row]

    def domain(self, row: int) -> str:
        if row not in self._domains:
            self._domains[row] = domain_of(self.words(row))
        return self._domains[row]

    def warm(self) -> "LocalIndex":
        """Builds what a first search would otherwise wait for."""
        _ = self.names, self.full_names, self.name_parts, self.place_by_name, self.words_by_length
        _ = self._rows_of_kind, self._rows_by_name, self._rows_of_any_case
        return self


def _best(scores: Scores | Vector, rows: Rows, limit: int) -> list[Candidate]:
    best = rows if len(rows) <= limit else rows[np.argpartition(-scores[rows], limit)[:limit]]
    order = best[np.lexsort((best, -scores[best]))]
    return [Candidate(row, score) for row, score in zip(order.tolist(), scores[order].tolist(), strict=True)]


def _postings(analysed: Iterable[Analysed]) -> tuple[Mapping[int, slice], Rows, NDArray[np.float32]]:
    """Where the items of each term stand, and those items with their weights."""
    each = list(analysed)
    terms = np.concatenate([one.terms for one in each]) if each else np.zeros(0, np.uint32)
    weights = np.concatenate([one.weights for one in each]) if each else np.zeros(0, np.float32)
    rows = np.repeat(np.arange(len(each)), [len(one.terms) for one in each])
    order = np.argsort(terms, kind="stable")
    distinct, first = np.unique(terms[order], return_index=True)
    ends = [*first[1:].tolist(), len(terms)]
    places = dict(zip(distinct.tolist(), map(slice, first.tolist(), ends), strict=True))
    return places, rows[order], weights[order]


def corrections(text: str, index: LocalIndex) -> dict[str, str]:
    """The words nobody knows, each with the nearest that somebody does. A value is not misspelt, it is a value."""
    words = dict.fromkeys(without_stop_words(words_of(strip_literals(text))))
    return _corrections([word for word in words if not _is_known(word, index)], index)


def _is_known(word: str, index: LocalIndex) -> bool:
    return any(index.knows(term) for term in terms_of_word(word))


def _corrections(unknown: Sequence[str], index: LocalIndex) -> dict[str, str]:
    candidates = [word for word in unknown if len(word) >= MIN_CORRECTED and not word.isdigit()]
    nearest = {word: _nearest(word, index) for word in candidates[:MAX_CORRECTED]}
    return {word: found for word, found in nearest.items() if found}


def _nearest(word: str, index: LocalIndex) -> str | None:
    """The nearest known word that is at most two letters longer or shorter."""
    known = [
        one for length in range(len(word) - 2, len(word) + 3) for one in index.words_by_length.get(length, ())
    ]
    found = process.extractOne(word, known, scorer=OSA.normalized_similarity, score_cutoff=SWAPPED_LETTERS)
    if found is None:
        return None
    nearest, likeness = str(found[0]), found[1]
    return nearest if likeness >= NEAREST_WORD or sorted(nearest) == sorted(word) else None


def name_likeness(text: str, index: LocalIndex, rows: Rows) -> Scores:
    """How much the query looks like each item's own name, 0 to 1; 1 only when it is the name to the letter.

    A name said within a sentence counts as well when it can be nothing else: `read_file`, `readFile`.
    """
    said = _names_said(text)
    likeness = _nearness([squashed(one) for one in said], index)
    for name in (text.strip(), *said):
        likeness[index.rows_named(name, of_any_case=True)] = EXACT_BUT_FOR_CASE
    for name in (text.strip(), *said):
        likeness[index.rows_named(name)] = 1.0
    return likeness[rows]


def _nearness(said: Sequence[str], index: LocalIndex) -> Scores:
    if not said or not len(index):
        return np.zeros(len(index))
    by_name = process.cdist(said, index.names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    by_full_name = process.cdist(said, index.full_names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    nearest = np.maximum(by_name, by_full_name).max(axis=0)
    return np.asarray(nearest / 100 * ALL_BUT_EXACT, dtype=np.float64)


def _names_said(text: str) -> list[str]:
    """The whole query when it is short enough to be a name, and its words that look like one."""
    words = text.split()
    parts = [one for one in words if len(words_of(one)) > 1] if len(words) > 1 else []
    whole = [text.strip()] if len(words) <= MAX_NAME_ASKED else []
    return [part for part in dict.fromkeys(whole + parts) if len(squashed(part)) > 1][:MAX_NAMES]
