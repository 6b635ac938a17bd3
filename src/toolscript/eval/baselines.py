"""Plain ways to rank, which any engine has to beat: BM25, vectors alone, and two ways to fuse the two."""

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
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.eval.dataset import Dataset
from toolscript.eval.metrics import Numbers

K1, B = 1.5, 0.75
RRF_K = 60
PER_RETRIEVER = 100

Rows = NDArray[np.int64]
# Keys of the best items for a query, best first, at most so many.
Ranker = Callable[[str, int], Sequence[str]]


# As bm25s and Lucene do it, and not as our own word arm does: a baseline that is ours is none.
_WORD = re.compile(r"\b\w\w+\b")
_STOP_WORDS = {
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
    *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
    *("will", "with"),
}


def stems_of(text: str) -> list[int]:
    return [terms_of_word(word)[0] for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


class Bm25:
    """With the rarity that Lucene has, over stems; a word said twice in a query counts twice."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(stems_of(text)) for text in texts]
        self._size = len(counts)
        rows = np.repeat(np.arange(self._size), [len(one) for one in counts])
        stems = np.fromiter((stem for one in counts for stem in one), np.int64, len(rows))
        often = np.fromiter((often for one in counts for often in one.values()), np.float64, len(rows))
        order = np.argsort(stems, kind="stable")
        distinct, first = np.unique(stems[order], return_index=True)
        ends = [*first[1:].tolist(), len(rows)]
        self._places = dict(zip(distinct.tolist(), map(slice, first.tolist(), ends), strict=True))
        self._rows = rows[order]
        self._weights = self._saturated(counts, rows, often)[order]

    def scores(self, query: str) -> Numbers:
        """One per text; 0 where no word of the query is."""
        scores = np.zeros(self._size)
        for stem, often in Counter(stems_of(query)).items():
            place = self._places.get(stem)
            if place is not None:
                scores[self._rows[place]] += often * self._idf(place) * self._weights[place]
        return scores

    def _idf(self, place: slice) -> float:
        having = place.stop - place.start
        return float(np.log(1 + (self._size - having + 0.5) / (having + 0.5)))

    def _saturated(self, counts: Sequence[Counter[int]], rows: Rows, often: Numbers) -> Numbers:
        lengths = np.array([one.total() for one in counts], dtype=np.float64)
        default = lengths.mean() if lengths.any() else 1.0
        return np.asarray(often / (often + K1 * (1 - B + B * lengths[rows] / default)))


def best_rows(scores: Numbers, depth: int) -> Rows:
    """The best first, the earlier of two alike; what has no score at all is not among them."""
    found = np.flatnonzero(np.isfinite(scores))
    if len(found) > depth:
        found = found[np.argpartition(-scores[found], depth - 1)[:depth]]
    return found[np.lexsort((found, -scores[found]))]


def reciprocal_ranks(retrievers: Sequence[tuple[Rows, Numbers]], size: int) -> Numbers:
    """RRF: each arm gives 1 / (60 + place)."""
    total = np.zeros(size)
    for rows, _ in retrievers:
        total[rows] += 1 / (RRF_K + 1 + np.arange(len(rows)))
    return _of_any_retriever(total, retrievers)


def standard_scores(retrievers: Sequence[tuple[Rows, Numbers]], size: int) -> Numbers:
    """Half and half of z-scores; what one arm does not have stands where its last one stands."""
    total = np.zeros(size)
    for rows, scores in retrievers:
        spread = scores.std() if len(scores) else 0.0
        standing = (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))
        minimum = float(standing.min(initial=0.0))
        part = np.full(size, minimum)
        part[rows] = standing
        total += part / len(retrievers)
    return _of_any_retriever(total, retrievers)


def _of_any_retriever(total: Numbers, retrievers: Sequence[tuple[Rows, Numbers]]) -> Numbers:
    unknown = np.ones(len(total), dtype=bool)
    for rows, _ in retrievers:
        unknown[rows] = False
    total[unknown] = -np.inf
    return total


def plain_rankers(items: Sequence[Item], vectors: Matrix, queries: Mapping[str, Vector]) -> dict[str, Ranker]:
    """The four of them over one catalog. `queries` are the vectors of the queries that will be asked."""
    keys = [item.key for item in items]
    words = Bm25([embedded_text(item) for item in items])

    # All four are asked the same query in turn.
    @lru_cache(maxsize=2)
    def retrievers(query: str) -> tuple[tuple[Rows, Numbers], tuple[Rows, Numbers]]:
        by_words, by_meaning = words.scores(query), (vectors @ queries[query]).astype(np.float64)
        by_words[by_words <= 0] = -np.inf
        found, near = best_rows(by_words, PER_RETRIEVER), best_rows(by_meaning, PER_RETRIEVER)
        return (found, by_words[found]), (near, by_meaning[near])

    def named(rows: Rows) -> list[str]:
        return [keys[row] for row in rows.tolist()]

    return {
        "BM25": lambda query, depth: named(retrievers(query)[0][0][:depth]),
        "dense": lambda query, depth: named(retrievers(query)[1][0][:depth]),
        "RRF": lambda query, depth: named(best_rows(reciprocal_ranks(retrievers(query), len(keys)), depth)),
        "z-score": lambda query, depth: named(best_rows(standard_scores(retrievers(query), len(keys)), depth)),
    }


async def baselines_of(
    dataset: Dataset, embedder: Embedder, on_progress: OnProgress = silent
) -> dict[str, Ranker]:
    """The plain rankers over the items and queries of a set."""
    vectors = await embedder.embed_passages([embedded_text(item) for item in dataset.items])
    texts = list(dict.fromkeys(query.text for query in dataset.queries if query.answerable))
    queries: dict[str, Vector] = {}
    for done, text in enumerate(texts, 1):
        queries[text] = await embedder.embed_query(text)
        on_progress(Progress("embed queries", done, len(texts)))
    return plain_rankers(dataset.items, vectors, queries)
