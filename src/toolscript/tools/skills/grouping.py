"""Clusters that have a subject, and the items that fit them.

A cluster that no name fits is bisected, while its halves have better names; what has none in the end is dissolved.
An item goes to the nearest cluster, or to one that is about as near and whose name the item has the words of.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolscript.core.retrieval.model import Matrix
from toolscript.tools.skills.clustering import CHUNK, Labels, Rows, centroids_of, numbered, second_half
from toolscript.tools.skills.naming import CLEARLY_COVERED, ClusterText
from toolscript.tools.skills.phrases import Sampled, Term

# How often a cluster without a subject is bisected, and its halves again.
BISECTIONS = 3
# The names of the parts fit this share of the items more than that of the whole.
MIN_GAIN = 0.1
# A cluster whose name the item has the words of may be this much farther than the nearest one; of so many.
MAX_FARTHER, CANDIDATES = 0.12, 6
# How often items are moved to clusters that they fit, and these are named again.
FITTINGS = 5
# An item with a smaller cosine to all clusters, whose names do not fit it, belongs to none.
FAR = 0.35
# Clusters of the same name with a greater cosine are one, up to this share of the items.
SAME, MAX_MERGED = 0.4, 0.03
# Nearest clusters that are tried for room.
ROOM_LOOKED_FOR = 50


@dataclass(frozen=True)
class GroupLimits:
    """Of items that no name fits, `may_wait` may be in no cluster."""

    min_size: int
    max_size: int
    may_wait: int = 0


@dataclass
class Grouping:
    """Names clusters of these rows; a cluster is named once, however often it is asked for."""

    vectors: Matrix
    samples: Sequence[Sampled]
    text_of: Callable[[Rows], ClusterText]
    limits: GroupLimits
    _texts: dict[bytes, ClusterText] = field(default_factory=dict)

    def text(self, rows: Rows) -> ClusterText:
        key = rows.tobytes()
        if key not in self._texts:
            self._texts[key] = self.text_of(rows)
        return self._texts[key]

    def has_terms(self, labels: Labels) -> bool:
        """Return whether anything can be said about any of the clusters."""
        return any(
            self.text(np.flatnonzero(labels == label)).title_terms for label in range(int(labels.max()) + 1)
        )

    def grouped(self, labels: Labels) -> Labels:
        """Return clusters that have a subject, with the items that fit them; -1 for items that wait.

        Clusters are named after the items that fit them. The others are placed when all names are known: those
        farthest from all clusters wait, no more than may, and the rest goes to the nearest.
        """
        parts = [
            part
            for label in range(int(labels.max(initial=-1)) + 1)
            for part in self._parts(np.flatnonzero(labels == label), BISECTIONS)
        ]
        for _ in range(FITTINGS):
            named = self._named(parts)
            if not named:
                break
            fitted = self._fitted(_labels_of(named, len(labels)), list(map(self.text, named)))
            parts = [np.flatnonzero(fitted == place) for place in range(len(named))]
            if all(map(np.array_equal, parts, named)):
                break
        if named := self._named(parts):
            return self._merged(self._placed(_labels_of(named, len(labels)), len(named)))
        if len(labels) <= self.limits.may_wait:
            return np.full(len(labels), -1, dtype=np.int32)
        return self._merged(labels)

    def _named(self, parts: Sequence[Rows]) -> list[Rows]:
        return [part for part in parts if len(part) >= self.limits.min_size and self.text(part).is_named]

    def _parts(self, rows: Rows, bisections: int) -> list[Rows]:
        """Return the rows, or parts of them if these have names that fit more of them."""
        text = self.text(rows)
        if text.clarity >= CLEARLY_COVERED or not bisections or len(rows) < 2 * self.limits.min_size:
            return [rows]
        second = second_half(self.vectors[rows])
        halves = (rows[~second], rows[second])
        if min(map(len, halves)) < self.limits.min_size:
            return [rows]
        parts = [part for half in halves for part in self._parts(half, bisections - 1)]
        gain = sum(len(part) * self.text(part).clarity for part in parts) - len(rows) * text.clarity
        return parts if gain > MIN_GAIN * len(rows) else [rows]

    def _fitted(self, labels: Labels, titles: Sequence[ClusterText]) -> Labels:
        """Move each item to the nearest cluster that it fits, among those about as near as the nearest.

        An item that fits none of them stays in its own if that is near; otherwise it is in none.
        """
        centroids = centroids_of(self.vectors, labels, len(titles))
        sizes = Counter(labels.tolist())
        fitted = labels.copy()
        for start in range(0, len(labels), CHUNK):
            scores = np.round(self.vectors[start : start + CHUNK] @ centroids.T, 5)
            order = _best_first(scores)
            for row, near in enumerate(order, start):
                score = scores[row - start]
                candidates = near[:CANDIDATES][score[near[:CANDIDATES]] >= score[near[0]] - MAX_FARTHER].tolist()
                own = int(labels[row])
                label = self._fit(row, own, candidates, titles, sizes)
                if label is None:
                    label = own if score[near[0]] >= FAR else -1
                sizes[own] -= 1
                sizes[label] += 1
                fitted[row] = label
        return fitted

    def _placed(self, labels: Labels, count: int) -> Labels:
        """Put items that are in no cluster into the nearest one with room, but for those that wait."""
        placed, rows = labels.copy(), np.flatnonzero(labels < 0)
        centroids, sizes = centroids_of(self.vectors, labels, count), Counter(labels.tolist())
        without: list[tuple[float, int, list[int]]] = []
        for start in range(0, len(rows), CHUNK):
            scores = np.round(self.vectors[rows[start : start + CHUNK]] @ centroids.T, 5)
            near = zip(rows[start : start + CHUNK].tolist(), scores, _best_first(scores), strict=True)
            without += [(float(score[best[0]]), row, best.tolist()) for row, score, best in near]
        for _, row, candidates in sorted(without)[self.limits.may_wait :]:
            room = (label for label in candidates if sizes[label] < self.limits.max_size)
            label = next(room, candidates[0])
            sizes[label] += 1
            placed[row] = label
        return placed

    def _merged(self, labels: Labels) -> Labels:
        """Merge clusters of the same name whose centroids are near, while they are not too large."""
        labels, count = labels.copy(), int(labels.max(initial=-1)) + 1
        centroids = centroids_of(self.vectors, labels, count)
        sizes = np.bincount(labels[labels >= 0], minlength=count)
        first_of: dict[tuple[Term, ...], int] = {}
        for label in range(count):
            text = self.text(np.flatnonzero(labels == label))
            if text.server_words or not text.title_terms:
                continue
            first = first_of.setdefault(tuple(sorted(text.title_terms)), label)
            together = int(sizes[first] + sizes[label])
            is_near = float(centroids[first] @ centroids[label]) >= SAME
            if first != label and is_near and together <= MAX_MERGED * len(labels):
                labels[labels == label] = first
                sizes[first] = together
        return numbered(labels)

    def _fit(
        self,
        row: int,
        own: int,
        candidates: Sequence[int],
        titles: Sequence[ClusterText],
        sizes: Mapping[int, int],
    ) -> int | None:
        """Return the first cluster that the item fits, its own before others; a full one takes no other items."""
        sample = self.samples[row]
        for label in (own, *candidates) if own >= 0 else candidates:
            if titles[label].fits(sample) and (label == own or sizes[label] < self.limits.max_size):
                return label
        return None


def _labels_of(parts: Sequence[Rows], count: int) -> Labels:
    labels = np.full(count, -1, dtype=np.int32)
    for place, part in enumerate(parts):
        labels[part] = place
    return labels


def _best_first(scores: Matrix) -> Rows:
    """Return the places of the best scores of each row, the best first."""
    count = scores.shape[1]
    if count <= ROOM_LOOKED_FOR:
        return np.argsort(-scores, axis=1, kind="stable")
    best = np.sort(np.argpartition(-scores, ROOM_LOOKED_FOR, axis=1)[:, :ROOM_LOOKED_FOR], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)
