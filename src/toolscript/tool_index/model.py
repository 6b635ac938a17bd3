"""The answers of a `ToolIndex`: hits with the tools as they were given, a verdict, and explanations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from toolscript.core.items import Item, JsonObject
from toolscript.gateway.model import LocalAnswer, LocalHit, Placement, WordMatch

ToolT = TypeVar("ToolT")

# Tools in a list, or the lists of several servers by the server's name.
Tools = Iterable[ToolT] | Mapping[str, Iterable[ToolT]]

EMPTY = "the index has no tools: add some with `add`"


@dataclass(frozen=True)
class Entry(Generic[ToolT]):
    """An indexed tool. `definition` is what a file can hold of it; None for a Python function.

    `server` is the one it was listed under; empty if it was in a plain list.
    """

    name: str
    tool: ToolT
    item: Item
    server: str = ""
    definition: JsonObject | None = None


@dataclass(frozen=True)
class IndexHit(Generic[ToolT]):
    """A tool that was found: `tool` is the object that was given to the index.

    `confidence` is a probability, comparable between queries; `score` is the sum that ranks the hits of one query,
    and `contributions` has its parts. `similarity` is the cosine; None where dense retrieval was not used.
    `input_schema` is the JSON Schema of the arguments, also that of a Python function.
    """

    name: str
    tool: ToolT
    confidence: float
    score: float
    reason: str
    description: str
    input_schema: JsonObject | None
    similarity: float | None
    matched: tuple[WordMatch, ...]
    contributions: Mapping[str, float]


@dataclass(frozen=True)
class IndexStep(Generic[ToolT]):
    """One step of a request for several things, the hits for it alone, and whether something fits it."""

    query: str
    hits: tuple[IndexHit[ToolT], ...]
    good_match: bool


@dataclass(frozen=True)
class IndexAnswer(Generic[ToolT]):
    """`good_match` says whether something fits, and is among the hits: False means that the hits are guesses.

    `steps` has the hits for each step of a request for several things, and is empty for a single one. `total`
    counts the tools that reach the threshold; `near_misses` are the best ones when none does. `unmatched` are the
    query words that none of the best tools has. `semantic` is False when sparse retrieval answered alone.
    `hint` says what to do about an empty or a degraded answer. `milliseconds` is the time of each stage.
    """

    query: str
    hits: tuple[IndexHit[ToolT], ...]
    steps: tuple[IndexStep[ToolT], ...]
    good_match: bool
    total: int
    threshold: float
    semantic: bool
    near_misses: tuple[IndexHit[ToolT], ...]
    unmatched: tuple[str, ...]
    hint: str
    milliseconds: Mapping[str, float]

    @property
    def tools(self) -> list[ToolT]:
        """The tools of the hits, best first, as they were given to the index."""
        return [hit.tool for hit in self.hits]


class Outcome(StrEnum):
    """What became of a tool in a search."""

    RETURNED = "returned"
    BELOW_THRESHOLD = "below the threshold"
    BEYOND_LIMIT = "beyond the limit"
    NOT_RETRIEVED = "not retrieved"


@dataclass(frozen=True)
class Explanation(Generic[ToolT]):
    """How a tool ranks for a query. `place` is 1 for the first of the `candidates`; None if it is none of them.

    `unmatched` are the query words that the tool lacks.
    """

    hit: IndexHit[ToolT]
    outcome: Outcome
    place: int | None
    candidates: int
    unmatched: tuple[str, ...]

    def __str__(self) -> str:
        place = "no candidate" if self.place is None else f"{self.place} of {self.candidates} candidates"
        lacks = f"; lacks the words {', '.join(self.unmatched)}" if self.unmatched else ""
        reason = f"{self.hit.reason}{lacks}"
        return f"{self.hit.name}: {self.outcome}, {place}, confidence {self.hit.confidence:.2f}. {reason}"


def hit_of(hit: LocalHit, entries: Mapping[str, Entry[ToolT]]) -> IndexHit[ToolT]:
    entry = entries[hit.item.key]
    return IndexHit(
        name=entry.name,
        tool=entry.tool,
        confidence=hit.confidence,
        score=hit.score,
        reason=hit.reason,
        description=hit.item.description,
        input_schema=hit.item.input_schema,
        similarity=hit.parts.semantic,
        matched=hit.parts.matched,
        contributions=hit.parts.contributions,
    )


def answer_of(answer: LocalAnswer, entries: Mapping[str, Entry[ToolT]]) -> IndexAnswer[ToolT]:
    return IndexAnswer(
        query=answer.query,
        hits=_hits_of(answer.hits, entries),
        steps=tuple(IndexStep(step.query, _hits_of(step.hits, entries), step.good_match) for step in answer.steps),
        good_match=answer.good_match,
        total=answer.total,
        threshold=answer.threshold,
        semantic=answer.semantic,
        near_misses=_hits_of(answer.near_misses, entries),
        unmatched=answer.unmatched,
        hint=answer.hint if entries else EMPTY,
        milliseconds=answer.milliseconds,
    )


def _hits_of(hits: Sequence[LocalHit], entries: Mapping[str, Entry[ToolT]]) -> tuple[IndexHit[ToolT], ...]:
    return tuple(hit_of(hit, entries) for hit in hits)


def explanation_of(
    placement: Placement, entries: Mapping[str, Entry[ToolT]], limit: int, threshold: float
) -> Explanation[ToolT]:
    if placement.place is None:
        outcome = Outcome.NOT_RETRIEVED
    elif placement.hit.confidence < threshold:
        outcome = Outcome.BELOW_THRESHOLD
    else:
        outcome = Outcome.RETURNED if placement.place <= limit else Outcome.BEYOND_LIMIT
    hit = hit_of(placement.hit, entries)
    return Explanation(hit, outcome, placement.place, placement.candidates, placement.unmatched)
