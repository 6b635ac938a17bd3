"""Fits the vectors of tokens so that their sum points where the model's vector of the whole text does."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]

# Tokens before this one are unused, punctuation or single characters; of the others, a lower id is more frequent.
FIRST_WORD = 1996
RANK_OF_THE_REST = 3
SMOOTHING = 3e-4

RIDGE = 1.0
ROUNDS = 2
STEPS = 5

# The weights of tokens, by Adam: so many steps, of this size, with this pull to the weight they have.
WEIGHT_STEPS = 30
WEIGHT_RATE = 0.05
WEIGHT_PULL = 2.5e-3
SLOPE_DECAY, SQUARE_DECAY = 0.9, 0.99
MIN_SLOPE = 1e-3

# The principal components of the targets are divided by this power of their mean square: a few hold most of it.
WHITENING = 0.15
MIN_SQUARE = 1e-5

# A row is cut at this many standard deviations, so that 15 levels suffice for it.
CLIP = 2.7
LEVELS = 7

# One dimension of the model is always zero.
TINY = 1e-20

CHUNK = 1_024
GROUPED = 32


def start_of(tokens: Matrix) -> Matrix:
    """Return where the fit starts: hidden states without their mean, frequent words shorter (SIF)."""
    centred = tokens - tokens[FIRST_WORD:].mean(axis=0)
    rank = np.arange(len(tokens)) - (FIRST_WORD - 1)
    frequency = 1 / np.where(rank < 1, RANK_OF_THE_REST, rank)
    frequency /= frequency.sum()
    weight = SMOOTHING / (SMOOTHING + frequency)
    return (_unit(centred) * weight[:, np.newaxis]).astype(np.float32)


class Bags:
    """Texts as bags of tokens: sums over the tokens of a text, and over the texts of a token."""

    def __init__(self, texts: Sequence[Sequence[int]], tokens: int) -> None:
        lengths = np.array([len(text) for text in texts])
        members = np.concatenate([np.asarray(text, np.int64) for text in texts])
        owners = np.repeat(np.arange(len(texts)), lengths)
        self._size, self._tokens = len(texts), tokens
        self._by_text = _groups(members, owners)
        self._by_token = _groups(owners[np.argsort(members, kind="stable")], np.sort(members))

    def pool(self, table: Matrix) -> Matrix:
        return _sums(table, self._by_text, self._size)

    def spread(self, rows: Matrix) -> Matrix:
        return _sums(rows, self._by_token, self._tokens)


def _groups(members: Rows, owners: Rows) -> list[tuple[Rows, Rows]]:
    """Group owners with equally many members, as matrices: these are summed fast, and in a fixed order."""
    distinct, first, counts = np.unique(owners, return_index=True, return_counts=True)
    groups = []
    for count in np.unique(counts):
        chosen = counts == count
        places = first[chosen][:, np.newaxis] + np.arange(count)
        groups.append((distinct[chosen], members[places]))
    return groups


def _sums(source: Matrix, groups: Sequence[tuple[Rows, Rows]], size: int) -> Matrix:
    sums = np.zeros((size, source.shape[1]), np.float32)
    for owners, members in groups:
        step = max(1, CHUNK * GROUPED // members.shape[1])
        for start in range(0, len(owners), step):
            sums[owners[start : start + step]] = source[members[start : start + step]].sum(axis=1)
    return sums


def fit(bags: Bags, targets: Matrix, start: Matrix) -> Matrix:
    """Regress the unit sums of the tokens on the targets, pulled to the start.

    A sum's length depends on the table, so each round scales every text anew and solves a linear problem.
    """
    table = start.copy()
    for _ in range(ROUNDS):
        pooled = bags.pool(table)
        scale = (1 / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
        wanted = bags.spread((targets - pooled * scale) * scale) + RIDGE * (start - table)
        table += _solve(bags, scale * scale, wanted)
    return table


def _solve(bags: Bags, weights: Matrix, wanted: Matrix) -> Matrix:
    """Return the change of the table, by conjugate gradients for all dimensions at once.

    Each row is scaled by how often its token occurs: otherwise frequent tokens hold up all others.
    """
    change = np.zeros_like(wanted)
    rarity = np.asarray(1 / (bags.spread(weights) + RIDGE), np.float32)
    left, direction = wanted, wanted * rarity
    length = np.einsum("td,td->d", left, direction)
    for _ in range(STEPS):
        image = bags.spread(bags.pool(direction) * weights) + RIDGE * direction
        step = length / np.maximum(np.einsum("td,td->d", direction, image), TINY)
        change += step * direction
        left = left - step * image
        scaled = left * rarity
        shorter = np.einsum("td,td->d", left, scaled)
        direction = scaled + (shorter / np.maximum(length, TINY)) * direction
        length = shorter
    return change


def weigh(bags: Bags, targets: Matrix, table: Matrix) -> Matrix:
    """Scale each vector so that the cosine of sums and targets grows: the regression makes rare tokens short."""
    logs, slope, square = (np.zeros(len(table), np.float32) for _ in range(3))
    for step in range(1, WEIGHT_STEPS + 1):
        scaled = np.asarray(table * np.exp(logs)[:, np.newaxis], np.float32)
        pooled = bags.pool(scaled)
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        sums = pooled / lengths
        cosines = np.einsum("td,td->t", sums, targets)[:, np.newaxis]
        uphill = np.einsum("td,td->t", bags.spread((targets - cosines * sums) / lengths), scaled)
        uphill -= WEIGHT_PULL * logs
        slope = SLOPE_DECAY * slope + (1 - SLOPE_DECAY) * uphill
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * uphill**2
        spread = np.sqrt(square / (1 - SQUARE_DECAY**step)) + MIN_SLOPE
        logs = (logs + WEIGHT_RATE * slope / (1 - SLOPE_DECAY**step) / spread).astype(np.float32)
    return np.asarray(table * np.exp(logs)[:, np.newaxis])


def whiten(table: Matrix, targets: Matrix) -> Matrix:
    """Shrink the directions that all texts share or differ in most, so that the others count more."""
    wide = targets.astype(np.float64)
    squares, directions = np.linalg.eigh(wide.T @ wide / len(wide))
    shrink = np.maximum(squares, MIN_SQUARE) ** -WHITENING
    return np.asarray(table @ ((directions * shrink) @ directions.T), np.float32)


def quantize(table: Matrix) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return two numbers from -7 to 7 in each byte, each plus 8, and the scale of each row."""
    scales = np.maximum(CLIP * table.std(axis=1) / LEVELS, 1e-4).astype(np.float16)
    levels = np.rint(table / scales.astype(np.float32)[:, np.newaxis])
    numbers = (np.clip(levels, -LEVELS, LEVELS) + LEVELS + 1).astype(np.uint8)
    return (numbers[:, 0::2] << 4) | numbers[:, 1::2], scales


def _unit(rows: Matrix) -> Matrix:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
