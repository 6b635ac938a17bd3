"""Baselines that any engine has to beat: BM25, dense, two fusions of both, and the search built into clients."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolscript.core.item_text import embedded_text
from toolscript.core.items import Item
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.terms import split_identifier, terms_of_word
from toolscript.core.values import OnProgress, Progress, silent
from toolscript_eval.dataset import Dataset
from toolscript_eval.metrics import Numbers

K1, B = 1.5, 0.75
RRF_K = 60
PER_RETRIEVER = 100

Rows = NDArray[np.int64]
# Returns the keys of the best items for a query, best first, at most `depth`.
Ranker = Callable[[str, int], Sequence[str]]


# Tokenized as in bm25s and Lucene, not as in our own sparse retriever: a baseline must be independent.
_WORD = re.compile(r"\b\w\w+\b")
_STOP_WORDS = {
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
    *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
    *("will", "with"),
}


class Regex:
    """Search by regular expression, as clients offer it to a model: which texts have most words of the request.

    A client's model writes the expression itself; here it is one of all words of the request, in any case.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text.casefold() for text in texts]

    def scores(self, query: str) -> Numbers:
        words = {word for word in _WORD.findall(query.casefold()) if word not in _STOP_WORDS}
        if not words:
            return np.zeros(len(self._texts))
        pattern = re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)))
        return np.array([float(len(set(pattern.findall(text)))) for text in self._texts])


def client_text(item: Item) -> str:
    """Return what clients search: name, description, and the names and descriptions of arguments."""
    properties = (item.input_schema or {}).get("properties")
    arguments = properties.items() if isinstance(properties, Mapping) else ()
    described = [
        f"{name} {schema.get('description', '') if isinstance(schema, Mapping) else ''}"
        for name, schema in arguments
    ]
    return " ".join([item.name, split_identifier(item.name), item.description, *described])


def stems_of(text: str) -> list[int]:
    return [terms_of_word(word)[0] for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


class Bm25:
    """BM25 over stems, with the IDF of Lucene; a word that occurs twice in a query counts twice."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(stems_of(text)) for text in texts]
        self._size = len(counts)
        rows = np.repeat(np.arange(self._size), [len(count) for count in counts])
        stems = np.fromiter((stem for count in counts for stem in count), np.int64, len(rows))
        frequency = np.fromiter(
            (frequency for count in counts for frequency in count.values()), np.float64, len(rows)
        )
        order = np.argsort(stems, kind="stable")
        distinct, first = np.unique(stems[order], return_index=True)
        ends = [*first[1:].tolist(), len(rows)]
        self._places = dict(zip(distinct.tolist(), map(slice, first.tolist(), ends), strict=True))
        self._rows = rows[order]
        self._weights = self._saturated(counts, rows, frequency)[order]

    def scores(self, query: str) -> Numbers:
        """Return one score per text; 0 without a word of the query."""
        scores = np.zeros(self._size)
        for stem, frequency in Counter(stems_of(query)).items():
            place = self._places.get(stem)
            if place is not None:
                scores[self._rows[place]] += frequency * self._idf(place) * self._weights[place]
        return scores

    def _idf(self, place: slice) -> float:
        matching = place.stop - place.start
        return float(np.log(1 + (self._size - matching + 0.5) / (matching + 0.5)))

    def _saturated(self, counts: Sequence[Counter[int]], rows: Rows, frequency: Numbers) -> Numbers:
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        default = lengths.mean() if lengths.any() else 1.0
        return np.asarray(frequency / (frequency + K1 * (1 - B + B * lengths[rows] / default)))


def best_rows(scores: Numbers, depth: int) -> Rows:
    """Return the best rows first, ties in order; leave out rows without a score."""
    rows = np.flatnonzero(np.isfinite(scores))
    if len(rows) > depth:
        rows = rows[np.argpartition(-scores[rows], depth - 1)[:depth]]
    return rows[np.lexsort((rows, -scores[rows]))]


def reciprocal_ranks(retrievers: Sequence[tuple[Rows, Numbers]], size: int) -> Numbers:
    """RRF: each retriever contributes 1 / (60 + rank)."""
    total = np.zeros(size)
    for rows, _ in retrievers:
        total[rows] += 1 / (RRF_K + 1 + np.arange(len(rows)))
    return _of_any_retriever(total, retrievers)


def standard_scores(retrievers: Sequence[tuple[Rows, Numbers]], size: int) -> Numbers:
    """Mean of z-scores; a candidate missing from one retriever gets that list's minimum score."""
    total = np.zeros(size)
    for rows, scores in retrievers:
        spread = scores.std() if len(scores) else 0.0
        z_scores = (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))
        minimum = float(z_scores.min(initial=0.0))
        part = np.full(size, minimum)
        part[rows] = z_scores
        total += part / len(retrievers)
    return _of_any_retriever(total, retrievers)


def _of_any_retriever(total: Numbers, retrievers: Sequence[tuple[Rows, Numbers]]) -> Numbers:
    unknown = np.ones(len(total), dtype=bool)
    for rows, _ in retrievers:
        unknown[rows] = False
    total[unknown] = -np.inf
    return total


def plain_rankers(items: Sequence[Item], vectors: Matrix, queries: Mapping[str, Vector]) -> dict[str, Ranker]:
    """Return the baselines over one catalog. `queries` are the vectors of all queries."""
    keys = [item.key for item in items]
    bm25 = Bm25([embedded_text(item) for item in items])

    client_texts = [client_text(item) for item in items]
    native: dict[str, Bm25 | Regex] = {"native-bm25": Bm25(client_texts), "native-regex": Regex(client_texts)}

    def native_ranker(index: Bm25 | Regex) -> Ranker:
        def rank(query: str, depth: int) -> list[str]:
            scores = index.scores(query)
            return keys_of(best_rows(np.where(scores > 0, scores, -np.inf), depth))

        return rank

    # These four rank the same query in turn.
    @lru_cache(maxsize=2)
    def retrievers(query: str) -> tuple[tuple[Rows, Numbers], tuple[Rows, Numbers]]:
        sparse, dense = bm25.scores(query), (vectors @ queries[query]).astype(np.float64)
        sparse[sparse <= 0] = -np.inf
        sparse_rows, dense_rows = best_rows(sparse, PER_RETRIEVER), best_rows(dense, PER_RETRIEVER)
        return (sparse_rows, sparse[sparse_rows]), (dense_rows, dense[dense_rows])

    def keys_of(rows: Rows) -> list[str]:
        return [keys[row] for row in rows.tolist()]

    return {
        "BM25": lambda query, depth: keys_of(retrievers(query)[0][0][:depth]),
        "dense": lambda query, depth: keys_of(retrievers(query)[1][0][:depth]),
        "RRF": lambda query, depth: keys_of(best_rows(reciprocal_ranks(retrievers(query), len(keys)), depth)),
        "z-score": lambda query, depth: keys_of(best_rows(standard_scores(retrievers(query), len(keys)), depth)),
        **{name: native_ranker(index) for name, index in native.items()},
    }


async def baselines_of(
    dataset: Dataset, embedder: Embedder, on_progress: OnProgress = silent
) -> dict[str, Ranker]:
    """Return the baselines over the items and queries of a dataset."""
    vectors = await embedder.embed_texts([embedded_text(item) for item in dataset.items])
    texts = list(dict.fromkeys(query.text for query in dataset.queries if query.answerable))
    queries: dict[str, Vector] = {}
    for done, text in enumerate(texts, 1):
        queries[text] = await embedder.embed_query(text)
        on_progress(Progress("embed queries", done, len(texts)))
    return plain_rankers(dataset.items, vectors, queries)
