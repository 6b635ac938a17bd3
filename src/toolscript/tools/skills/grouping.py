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

        Items that no name fits wait, those farthest from all clusters first, and no more than may.
        """
        parts = [
            part
            for label in range(int(labels.max(initial=-1)) + 1)
            for part in self._parts(np.flatnonzero(labels == label), BISECTIONS)
        ]
        for _ in range(FITTINGS):
            named = [part for part in parts if self.text(part).is_named]
            if not named:
                break
            labels = np.full(len(labels), -1, dtype=np.int32)
            for place, part in enumerate(named):
                labels[part] = place
            labels = numbered(self._fitted(labels, list(map(self.text, named))))
            parts = [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]
            if len(parts) == len(named) and all(map(np.array_equal, parts, named)):
                break
        labels = self._merged(labels)
        if not named and len(labels) <= self.limits.may_wait:
            return np.full(len(labels), -1, dtype=np.int32)
        return labels

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

        An item that fits none of them stays in its own, waits, or goes to the nearest.
        """
        centroids = centroids_of(self.vectors, labels, len(titles))
        sizes = Counter(labels.tolist())
        fitted, without = labels.copy(), []
        for start in range(0, len(labels), CHUNK):
            scores = np.round(self.vectors[start : start + CHUNK] @ centroids.T, 5)
            order = _best_first(scores)
            for row, near in enumerate(order, start):
                score = scores[row - start]
                candidates = near[:CANDIDATES][score[near[:CANDIDATES]] >= score[near[0]] - MAX_FARTHER].tolist()
                own = int(labels[row])
                label = self._fit(row, [own, *candidates] if own >= 0 else candidates, titles, sizes)
                if label is None and (own < 0 or score[near[0]] < FAR):
                    sizes[own] -= 1
                    fitted[row] = -1
                    without.append((float(score[near[0]]), row, near.tolist()))
                elif label is not None and label != own:
                    sizes[own] -= 1
                    sizes[label] += 1
                    fitted[row] = label
        without.sort()
        for _, row, candidates in without[self.limits.may_wait :]:
            room = (label for label in candidates if sizes[label] < self.limits.max_size)
            label = next(room, candidates[0])
            sizes[label] += 1
            fitted[row] = label
        return fitted

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
        self, row: int, candidates: Sequence[int], titles: Sequence[ClusterText], sizes: Mapping[int, int]
    ) -> int | None:
        """Return the first of the clusters that the item fits; a full one takes no other items."""
        sample = self.samples[row]
        for place, label in enumerate(candidates):
            if titles[label].fits(sample) and (place == 0 or sizes[label] < self.limits.max_size):
                return label
        return None


def _best_first(scores: Matrix) -> Rows:
    """Return the places of the best scores of each row, the best first."""
    count = scores.shape[1]
    if count <= ROOM_LOOKED_FOR:
        return np.argsort(-scores, axis=1, kind="stable")
    best = np.sort(np.argpartition(-scores, ROOM_LOOKED_FOR, axis=1)[:, :ROOM_LOOKED_FOR], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)
