"""Clusters of unit vectors: bisecting spherical k-means without random numbers.

The same rows in the same order give the same clusters. Time grows with rows and clusters, memory with the rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.model import Matrix, Vector

Labels = NDArray[np.int32]
Rows = NDArray[np.intp]

POWER_STEPS = 12
BISECTION_ROUNDS = 12
REFINEMENT_ROUNDS = 12
# Halves of a cluster with a smaller cosine are about different things: that of two random clusters is near 0.
APART = 0.33
APART_ROUNDS = 8
# Rows compared with all centroids at a time.
CHUNK = 16_384


@dataclass(frozen=True)
class ClusterLimits:
    """`count` is the number aimed at; the sizes are kept whatever it is, where the rows allow it."""

    count: int
    max_size: int
    min_size: int = 1


@dataclass(frozen=True)
class Nearest:
    """The best and the second best centroid of each row, with their cosines."""

    first: Labels
    first_score: Vector
    second: Labels
    second_score: Vector


def cluster(vectors: Matrix, limits: ClusterLimits) -> Labels:
    """Return a cluster for each row, numbered from 0. None is larger than `max_size`."""
    if not len(vectors):
        return np.zeros(0, dtype=np.int32)
    labels = np.zeros(len(vectors), dtype=np.int32)
    labels = _bisect(vectors, labels, limits)
    labels = _refine(vectors, labels)
    labels = _split_mixtures(vectors, labels, limits.min_size)
    # Refined clusters may have grown beyond the limit: bisect those, and only those, again.
    labels = _bisect(vectors, labels, ClusterLimits(0, limits.max_size))
    return _dissolve_small(vectors, labels, limits)


def centroids_of(vectors: Matrix, labels: Labels, count: int | None = None) -> Matrix:
    """Return the mean direction of each cluster; zeros for an empty one. Rows labelled -1 count nowhere."""
    size = int(labels.max(initial=-1)) + 1 if count is None else count
    sums = np.zeros((size, vectors.shape[1]), dtype=np.float64)
    for label in range(size):
        sums[label] = vectors[labels == label].sum(axis=0, dtype=np.float64)
    return unit_rows(sums)


def nearest(vectors: Matrix, centroids: Matrix) -> Nearest:
    """Compare each row with all centroids, in chunks. With one centroid the second is -1."""
    count = len(vectors)
    first, second = np.full(count, -1, dtype=np.int32), np.full(count, -1, dtype=np.int32)
    first_score, second_score = (np.full(count, -1.0, dtype=np.float32) for _ in range(2))
    if not len(centroids):
        return Nearest(first, first_score, second, second_score)
    for start in range(0, count, CHUNK):
        part = slice(start, start + CHUNK)
        # Rounded: the last bits of a product depend on the rows beside it.
        scores = np.round(vectors[part] @ centroids.T, 5)
        rows = np.arange(len(scores))
        first[part] = np.argmax(scores, axis=1)
        first_score[part] = scores[rows, first[part]]
        if len(centroids) > 1:
            scores[rows, first[part]] = -2.0
            second[part] = np.argmax(scores, axis=1)
            second_score[part] = scores[rows, second[part]]
    return Nearest(first, first_score, second, second_score)


def unit_rows(rows: NDArray[np.float64] | Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def numbered(labels: Labels) -> Labels:
    """Number the clusters from 0 without gaps, in order of their first rows; -1 stays."""
    used, first = np.unique(labels[labels >= 0], return_index=True)
    places = np.full(int(labels.max(initial=-1)) + 1, -1, dtype=np.int32)
    places[used[np.argsort(first, kind="stable")]] = np.arange(len(used), dtype=np.int32)
    return np.where(labels >= 0, places[np.maximum(labels, 0)], -1).astype(np.int32) if len(places) else labels


def dissolved(vectors: Matrix, labels: Labels, clusters: Rows, max_size: int) -> Labels:
    """Move the rows of these clusters to the nearest others that have room; to the nearest if none has."""
    rows = np.flatnonzero(np.isin(labels, clusters))
    sizes = np.bincount(labels)
    kept = np.setdiff1d(np.arange(len(sizes)), clusters)
    if not len(rows) or not len(kept):
        return numbered(labels)
    labels = labels.copy()
    centroids = centroids_of(vectors, labels)[kept]
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        order = np.argsort(-np.round(vectors[part] @ centroids.T, 5), axis=1, kind="stable")
        for row, nearest_first in zip(part.tolist(), kept[order], strict=True):
            candidates = nearest_first.tolist()
            label = next((label for label in candidates if sizes[label] < max_size), candidates[0])
            sizes[label] += 1
            labels[row] = label
    return numbered(labels)


def _bisect(vectors: Matrix, labels: Labels, limits: ClusterLimits) -> Labels:
    """Bisect the widest cluster until there are enough, and the too large ones until there is none."""
    labels = labels.copy()
    count = int(labels.max()) + 1
    widths = {label: _width(vectors[labels == label]) for label in range(count)}
    sizes = {label: int((labels == label).sum()) for label in range(count)}
    while True:
        too_large = [label for label, size in sizes.items() if size > limits.max_size]
        candidates = too_large or ([label for label in sizes if widths[label] > 0] if count < limits.count else [])
        if not candidates:
            return labels
        label = max(candidates, key=lambda label: (widths[label], -label))
        rows = np.flatnonzero(labels == label)
        labels[rows[second_half(vectors[rows])]] = count
        for half in (label, count):
            of_half = labels == half
            widths[half], sizes[half] = _width(vectors[of_half]), int(of_half.sum())
        count += 1


def _width(rows: Matrix) -> float:
    """The sum of the distances to the mean: what a split can win. Larger clusters of equal spread come first."""
    if len(rows) < 2:
        return 0.0
    return float(np.round(len(rows) - np.linalg.norm(rows.sum(axis=0, dtype=np.float64)), 4))


def second_half(rows: Matrix) -> NDArray[np.bool_]:
    """Return which rows form the second cluster. Neither is empty."""
    centred = rows - rows.mean(axis=0)
    # The row farthest from the mean is no random start, and no direction is orthogonal to all such rows.
    direction = centred[int(np.argmax(np.round((centred * centred).sum(axis=1), 5)))]
    for _ in range(POWER_STEPS):
        direction = centred.T @ (centred @ direction)
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            break
        direction = direction / np.float32(length)
    position = np.round(centred @ direction, 5)
    second: NDArray[np.bool_] = np.asarray(position > 0)
    for _ in range(BISECTION_ROUNDS):
        if not 0 < int(second.sum()) < len(rows):
            break
        two = unit_rows(np.stack([rows[~second].sum(axis=0), rows[second].sum(axis=0)]))
        scores = np.round(rows @ two.T, 5)
        moved: NDArray[np.bool_] = np.asarray(scores[:, 1] > scores[:, 0])
        if np.array_equal(moved, second):
            return second
        second = moved
    if 0 < int(second.sum()) < len(rows):
        return second
    # All rows are equal: any half does.
    halves = np.zeros(len(rows), dtype=np.bool_)
    halves[len(rows) // 2 :] = True
    return halves


def _refine(vectors: Matrix, labels: Labels) -> Labels:
    """Move each row to its nearest centroid until few move: bisection never moves a row between its branches."""
    for _ in range(REFINEMENT_ROUNDS):
        moved = nearest(vectors, centroids_of(vectors, labels)).first
        changed = int((moved != labels).sum())
        labels = moved
        if changed * 1_000 <= len(labels):
            break
    return numbered(labels)


def _split_mixtures(vectors: Matrix, labels: Labels, min_size: int) -> Labels:
    """Bisect clusters whose halves are about different things, and these again, while they are large enough."""
    labels, count = labels.copy(), int(labels.max()) + 1
    changed = list(range(count))
    for _ in range(APART_ROUNDS):
        halves_of: list[int] = []
        for label in changed:
            rows = np.flatnonzero(labels == label)
            if len(rows) <= min_size:
                continue
            second = second_half(vectors[rows])
            halves = unit_rows(np.stack([vectors[rows[~second]].sum(axis=0), vectors[rows[second]].sum(axis=0)]))
            if round(float(halves[0] @ halves[1]), 4) < APART:
                labels[rows[second]] = count
                halves_of += [label, count]
                count += 1
        changed = halves_of
    return labels


def _dissolve_small(vectors: Matrix, labels: Labels, limits: ClusterLimits) -> Labels:
    """Dissolve the clusters below the minimum. If all are below, the largest one stays."""
    sizes = np.bincount(labels)
    small = np.flatnonzero(sizes < limits.min_size)
    if len(small) == len(sizes):
        small = np.delete(small, int(np.argmax(sizes)))
    return dissolved(vectors, labels, small, limits.max_size)
