"""What the arms say of passages, said of documents: each stands for its best passage."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from toolscript.model.document_points import FoundPassage, FoundPassages
from toolscript.model.document_results import Exactness, Total
from toolscript.model.documents import DocumentKey

# What the best so many passages of an arm say decides how it is weighed, however many more are asked for: the
# first page is the same whether somebody wants the tenth or not.
LOOKED_AT = 100


@dataclass(frozen=True)
class Arm:
    """Documents by their best score, best first. `passages` is the number of the one that has it.

    The first `heard` of them are in the best passages. `few`: there are fewer passages than those.
    `is_full`: there may be more than were asked for.
    """

    scores: dict[DocumentKey, float]
    passages: dict[DocumentKey, int]
    heard: int
    few: bool
    is_full: bool

    @classmethod
    def of_whole(cls, scores: dict[DocumentKey, float], limit: int) -> "Arm":
        """Of what has no passages, best first."""
        found = len(scores)
        return cls(scores, {}, min(found, LOOKED_AT), found < LOOKED_AT, found >= limit)

    @property
    def heard_keys(self) -> list[DocumentKey]:
        return list(islice(self.scores, self.heard))


@dataclass(frozen=True)
class Arms:
    dense: Arm | None
    words: Arm | None

    @property
    def keys(self) -> list[DocumentKey]:
        named = [*(self.dense.scores if self.dense else ()), *(self.words.scores if self.words else ())]
        return sorted(set(named))

    @property
    def is_full(self) -> bool:
        return any(arm.is_full for arm in (self.dense, self.words) if arm)

    @property
    def total(self) -> Total | None:
        """How many documents match, where that is known: by meaning all do that pass the filters."""
        arm = self.dense or self.words
        if arm is None or (arm is self.dense and arm.is_full):
            return None
        return Total(len(arm.scores), Exactness.AT_LEAST if arm.is_full else Exactness.EXACT)

    def best_passage(self, key: DocumentKey) -> int:
        """Words say where in a text something is; where they are silent, its meaning does."""
        by_words = self.words.passages.get(key) if self.words else None
        if by_words is not None:
            return by_words
        return self.dense.passages.get(key, 0) if self.dense else 0


def by_document(found: FoundPassages, limit: int) -> Arms:
    """`limit` is how many passages each arm was asked for."""
    return Arms(_arm(found.dense, limit), _arm(found.words, limit))


def _arm(passages: Sequence[FoundPassage] | None, limit: int) -> Arm | None:
    if passages is None:
        return None
    scores: dict[DocumentKey, float] = {}
    numbers: dict[DocumentKey, int] = {}
    heard = 0
    for rank, (id_, score) in enumerate(passages):
        if id_.key not in scores:
            scores[id_.key], numbers[id_.key] = score, id_.number
        if rank < LOOKED_AT:
            heard = len(scores)
    return Arm(scores, numbers, heard, len(passages) < LOOKED_AT, len(passages) >= limit)
