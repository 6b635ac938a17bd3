"""In-memory index of items as arrays: scores every item in about a millisecond; spelling and domains."""

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

from toolscript.core.item_text import item_words, terms_of_words
from toolscript.core.items import CLIENT_PREFIX, SEPARATOR, Item, ItemKind, tool_id
from toolscript.core.retrieval.model import Candidate, CandidateArrays, Candidates, Matrix, Vector
from toolscript.core.retrieval.rerank import Features
from toolscript.core.retrieval.spelling import Vocabulary
from toolscript.core.retrieval.terms import is_plain, split_identifier, terms_of_word, words_of
from toolscript.gateway.listed_tools import ListedTools
from toolscript.gateway.twins import twin_groups

WEIGHTS = {"name": 3.0, "server": 2.0, "description": 1.0}
LEAST = 2.0


Keyword = frozenset[int]
StemsByField = Mapping[str, frozenset[int]]

Scores = NDArray[np.float64]
Rows = NDArray[np.int64]

MAX_NAME_ASKED = 5
NEAREST_NAME = 86.0
ALL_BUT_EXACT, EXACT_BUT_FOR_CASE = 0.99, 0.995
MAX_NAMES = 8
# What clients put before `server__tool` for every server.
ANY_CLIENT_PREFIX = "mcp__"


def stems_by_field(item: Item) -> StemsByField:
    return {
        field: frozenset(terms_of_word(word)[0] for word in words) for field, words in item_words(item).items()
    }


def domain_of(stems: StemsByField) -> str:
    """Return the domain with the highest keyword score for these fields; empty below the minimum."""
    names, by_stem = _domains()
    scores = [0.0] * len(names)
    for stem in frozenset().union(*(stems[field] for field in WEIGHTS)):
        for domain, keyword in by_stem.get(stem, ()):
            scores[domain] += max((WEIGHTS[field] for field in WEIGHTS if keyword <= stems[field]), default=0.0)
    best = max(range(len(names)), key=scores.__getitem__)
    return names[best] if scores[best] >= LEAST else ""


@cache
def _domains() -> tuple[tuple[str, ...], Mapping[int, Sequence[tuple[int, Keyword]]]]:
    """Return the domains' names, and their keywords by one stem of each, so an item is compared with few."""
    skills = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))
    by_stem: dict[int, list[tuple[int, Keyword]]] = {}
    for domain, skill in enumerate(skills):
        for words in skill["keywords"]:
            keyword = frozenset(terms_of_word(word)[0] for word in words_of(words))
            by_stem.setdefault(min(keyword), []).append((domain, keyword))
    return tuple(str(skill["name"]).lower() for skill in skills), by_stem


@dataclass(frozen=True)
class Analysed:
    """An item for sparse retrieval: its terms with weights, and its words for spelling correction."""

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


def normalise_name(name: str) -> str:
    """Normalise a name: drop case, `_`, `-`, `.` and spaces, which people mistype."""
    return "".join(char for char in name.casefold() if char.isalnum())


def name_parts(name: str) -> frozenset[str]:
    """Split a name into words: `run`, `shell` and `command` of `runShell_command`."""
    return frozenset(split_identifier(name).casefold().split())


class LocalIndex:
    """Immutable: changed items make a new index.

    `vectors` has a row per item; a row of zeros is an item without an embedding.
    """

    def __init__(self, items: Sequence[Item], analysed: Sequence[Analysed], vectors: Matrix | None = None) -> None:
        self.items = tuple(items)
        self._analysed = tuple(analysed)
        self._vectors = vectors
        self._stems: dict[int, StemsByField] = {}
        self._matching: dict[Hashable, Rows] = {}
        self._features: dict[int, Features] = {}
        self._domains: dict[int, str] = {}
        self._places, self._rows, self._weights = _postings(analysed)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def model_is_used(self) -> bool:
        return self._vectors is not None and bool(self._vectors.any())

    def with_vectors(self, vectors: Matrix) -> "LocalIndex":
        """Return a copy with these vectors; items and their analysis are shared."""
        other = copy(self)
        vars(other).update(_vectors=vectors)
        for of_vectors in ("model_is_used", "is_embedded"):
            vars(other).pop(of_vectors, None)
        return other

    @cached_property
    def listed_tools(self) -> ListedTools:
        return ListedTools(self.items)

    def rows(self, kind: ItemKind | None) -> Rows:
        return self._rows_of_kind[kind]

    @cached_property
    def _rows_of_kind(self) -> Mapping[ItemKind | None, Rows]:
        kinds = np.array([item.kind.value for item in self.items], dtype=object)
        of_kind: dict[ItemKind | None, Rows] = {kind: np.flatnonzero(kinds == kind.value) for kind in ItemKind}
        return {**of_kind, None: np.arange(len(self.items))}

    def similarities(self, vectors: Matrix) -> Matrix | None:
        """Return the cosines with every item, a row per vector; None if nothing is embedded yet."""
        if self._vectors is None or not self.model_is_used:
            return None
        # One product for all vectors: reading the items' vectors dominates the time.
        return np.ascontiguousarray((self._vectors @ vectors.T).T)

    @cached_property
    def is_embedded(self) -> NDArray[np.bool_]:
        assert self._vectors is not None  # noqa: S101
        return np.asarray(self._vectors.any(axis=1))

    def candidates(
        self, vectors: Sequence[Vector] | None, term_lists: Sequence[Mapping[int, float]], rows: Rows, limit: int
    ) -> list[Candidates]:
        """Return the top rows of both retrievers for each part of a request, as an engine would, but exact."""
        cosines = self.similarities(np.array(vectors)) if vectors else None
        embedded = rows if cosines is None else rows[self.is_embedded[rows]]
        candidate_lists = []
        for index, terms in enumerate(term_lists):
            words = self._best_by_words(terms, rows, limit)
            dense: CandidateArrays | None = None
            unlisted: Sequence[Candidate] = ()
            if cosines is not None and len(embedded):
                dense = _best(cosines[index], embedded, limit, self.rank_by_name)
                unlisted = self._unlisted(cosines[index], dense.ids, words.ids)
            candidate_lists.append(
                Candidates(dense, words, len(self.items), self._shares(terms), unlisted=unlisted)
            )
        return candidate_lists

    def _unlisted(self, cosines: Vector, dense: Rows, words: Rows) -> CandidateArrays:
        """Return the sparse candidates that are not among the dense ones, with their cosines."""
        is_unlisted = self.is_embedded.copy()
        is_unlisted[dense] = False
        rows = words[is_unlisted[words]]
        return CandidateArrays(rows, cosines[rows].astype(np.float64))

    def _best_by_words(self, terms: Mapping[int, float], rows: Rows, limit: int) -> CandidateArrays:
        scores = self.word_scores(terms)
        return _best(scores, rows[scores[rows] > 0], limit, self.rank_by_name)

    def _shares(self, terms: Iterable[int]) -> Mapping[int, float]:
        nowhere, items = slice(0, 0), max(1, len(self.items))
        places = ((term, self._places.get(term, nowhere)) for term in terms)
        return {term: (place.stop - place.start) / items for term, place in places}

    def features(self, row: int) -> Features:
        if row not in self._features:
            item = self.items[row]
            # Surface forms among the stems are harmless: no query stem equals one.
            terms = frozenset(self._analysed[row].terms.tolist())
            self._features[row] = Features("" if item.is_document else item.name, terms)
        return self._features[row]

    def idf(self, term: int) -> float:
        return self._idf(len(self.rows_with(term)))

    def rows_with(self, term: int) -> Rows:
        return self._postings_of(term)[0]

    def _idf(self, matches: int) -> float:
        return math.log(1 + (len(self.items) - matches + 0.5) / (matches + 0.5))

    def word_scores(self, terms: Mapping[int, float]) -> Scores:
        """Return the BM25F score of every item."""
        postings = [(weight, *self._postings_of(term)) for term, weight in terms.items() if term in self._places]
        if not postings:
            return np.zeros(len(self.items))
        rows = np.concatenate([rows for _, rows, _ in postings])
        scores = [weight * self._idf(len(rows)) * weights for weight, rows, weights in postings]
        return np.asarray(np.bincount(rows, np.concatenate(scores), minlength=len(self.items)), dtype=np.float64)

    def _postings_of(self, term: int) -> tuple[Rows, NDArray[np.float32]]:
        place = self._places.get(term, slice(0, 0))
        return self._rows[place], self._weights[place]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary((word for analysed in self._analysed for word in analysed.words), self._places)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(normalise_name(item.name) for item in self.items)

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        return tuple(normalise_name(tool_id(item.server, item.name)) for item in self.items)

    def rows_named(self, name: str, *, of_any_case: bool = False) -> list[int]:
        """Return the items with this name, with or without the server's name before it."""
        return self._rows_of_any_case.get(name.casefold(), []) if of_any_case else self._rows_by_name.get(name, [])

    def rows_of_tool(self, tool: str) -> list[int]:
        """Return the items that `server__tool` names: a tool and a prompt may have one name."""
        rows = self.rows_named(tool)
        return [row for row in rows if tool == tool_id(self.items[row].server, self.items[row].name)]

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
        """The words of each item's name, and of its server's name."""
        return tuple((name_parts(item.name), name_parts(item.server)) for item in self.items)

    @cached_property
    def rank_by_name(self) -> Rows:
        """The rank of each item in the order of names, to break ties."""
        order = sorted(
            range(len(self.items)), key=lambda row: tool_id(self.items[row].server, self.items[row].name)
        )
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places

    def rows_matching(self, key: Hashable, holds: Callable[[frozenset[str], frozenset[str]], bool]) -> Rows:
        """Return the items whose name and server words satisfy `holds`; cached per key."""
        if key not in self._matching:
            self._matching[key] = np.flatnonzero([holds(name, server) for name, server in self.name_parts])
        return self._matching[key]

    def stems(self, row: int) -> StemsByField:
        """Return the stems of an item's words by field."""
        if row not in self._stems:
            self._stems[row] = stems_by_field(self.items[row])
        return self._stems[row]

    def domain(self, row: int) -> str:
        if row not in self._domains:
            self._domains[row] = domain_of(self.stems(row))
        return self._domains[row]

    @cached_property
    def twins(self) -> Rows:
        """The group of each item: the same for twins."""
        return twin_groups(self.items)

    @cached_property
    def is_deprecated(self) -> NDArray[np.bool_]:
        return np.array([item.is_deprecated for item in self.items], dtype=np.bool_)

    def warm(self) -> "LocalIndex":
        """Build the lazy properties, so that the first search need not."""
        _ = self.names, self.full_names, self.name_parts, self.rank_by_name, self.vocabulary.words_by_length
        _ = self._rows_of_kind, self._rows_by_name, self._rows_of_any_case, self.twins, self.is_deprecated
        return self


def _best(scores: Scores | Vector, rows: Rows, limit: int, tie_order: Rows) -> CandidateArrays:
    """Return the rows with the highest scores; of equal ones the first in `tie_order`."""
    best, descending = rows, -scores[rows]
    if len(rows) > limit:
        last = np.partition(descending, limit - 1)[limit - 1]
        above, ties = rows[descending < last], rows[descending == last]
        best = np.concatenate([above, ties[np.argsort(tie_order[ties])][: limit - len(above)]])
        descending = -scores[best]
    order = best[np.lexsort((tie_order[best], descending))]
    return CandidateArrays(order, scores[order].astype(np.float64))


def _postings(analysed: Iterable[Analysed]) -> tuple[Mapping[int, slice], Rows, NDArray[np.float32]]:
    """Return the slice of each term, and the rows and weights these slices index."""
    analyses = list(analysed)
    terms = np.concatenate([analysis.terms for analysis in analyses]) if analyses else np.zeros(0, np.uint32)
    weights = np.concatenate([analysis.weights for analysis in analyses]) if analyses else np.zeros(0, np.float32)
    rows = np.repeat(np.arange(len(analyses)), [len(analysis.terms) for analysis in analyses])
    order = np.argsort(terms, kind="stable")
    distinct, first = np.unique(terms[order], return_index=True)
    ends = [*first[1:].tolist(), len(terms)]
    places = dict(zip(distinct.tolist(), map(slice, first.tolist(), ends), strict=True))
    return places, rows[order], weights[order]


def name_likeness(text: str, index: LocalIndex, rows: Rows) -> Scores:
    """Return the similarity of the query to each item's name, 0 to 1; 1 only for an exact match.

    A name within a sentence counts, too, when it is unmistakably one: `read_file`, `readFile`.
    """
    names = _mentioned_names(_without_client_prefix(text))
    likeness = _similarity_to_names([normalise_name(name) for name in names], index)
    names = [text.strip(), *names, *map(_without_client_prefix, names)]
    for name in names:
        likeness[index.rows_named(name, of_any_case=True)] = EXACT_BUT_FOR_CASE
    for name in names:
        likeness[index.rows_named(name)] = 1.0
    return likeness[rows]


def _without_client_prefix(text: str) -> str:
    """Return `server__tool` of a name as clients write it: `mcp__toolscript__server__tool`."""
    name = text.strip().removeprefix(CLIENT_PREFIX).removeprefix(ANY_CLIENT_PREFIX)
    return text if " " in name or SEPARATOR not in name else name


def _similarity_to_names(names: Sequence[str], index: LocalIndex) -> Scores:
    if not names or not len(index):
        return np.zeros(len(index))
    by_name = process.cdist(names, index.names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    by_full_name = process.cdist(names, index.full_names, scorer=fuzz.ratio, score_cutoff=NEAREST_NAME)
    nearest = np.maximum(by_name, by_full_name).max(axis=0)
    return np.asarray(nearest / 100 * ALL_BUT_EXACT, dtype=np.float64)


def _mentioned_names(text: str) -> list[str]:
    """Return the query if it is short enough to be a name, and its words that look like names."""
    words = text.split()
    parts = [word for word in words if not is_plain(word) and len(words_of(word)) > 1] if len(words) > 1 else []
    whole = [text.strip()] if len(words) <= MAX_NAME_ASKED else []
    return [part for part in dict.fromkeys(whole + parts) if len(normalise_name(part)) > 1][:MAX_NAMES]
