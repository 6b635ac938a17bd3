"""A language model as a classifier: several items a call, few calls at once, no more tokens than it was given."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from toolscript.errors import Rejected, ToolscriptError, Unavailable
from toolscript.model.skills import Classification, Skill, Unclassified
from toolscript.ports import TextModel
from toolscript.sync.classify.answers import answers_in
from toolscript.sync.classify.prompts import data_of, instructions_for, schema_for
from toolscript.sync.classify.rules import LEFT_OUT, Rated, Ratings, RulesClassifier, confidence_of

PART = {"part": "classifier"}

MOST_SKILLS_OFFERED = 60
# What the rules find less likely than this, an item that tried to steer does not get.
LEAST_FOR_STEERING = 0.25

logger = logging.getLogger(__name__)


@dataclass
class _Round:
    """The calls for one batch of the caller's. Once the endpoint is gone, those that have not begun do not."""

    failures: list[ToolscriptError] = field(default_factory=list)
    is_over: bool = False


class LlmClassifier:
    """Items it has no usable answer for come back without assignments; refused when the endpoint is no use."""

    def __init__(
        self,
        text: TextModel,
        rules: RulesClassifier,
        *,
        batch: int = 10,
        concurrency: int = 4,
        token_budget: int | None = None,
    ) -> None:
        self._text = text
        self._rules = rules
        self._batch = batch
        self._places = asyncio.Semaphore(concurrency)
        self._token_budget = token_budget
        self._spent_before = text.usage.tokens

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        if not items:
            return []
        self._keep_to_budget()
        ratings = await self._rules.rate(items, skills)
        if not ratings.skills:
            return [Classification() for _ in items]
        this_round = _Round()
        batches = list(self._batches(ratings))
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(self._ask(_part(ratings, places), this_round)) for places in batches]
        answers = {
            place: answer
            for places, call in zip(batches, calls, strict=True)
            for place, answer in zip(places, call.result(), strict=True)
            if answer is not None
        }
        if not answers and (failure := _failure(this_round, len(calls))):
            raise failure
        if this_round.failures:
            reason = this_round.failures[0].message
            logger.warning("%d items left to the rules: %s", len(items) - len(answers), reason, extra=PART)
        return [answers.get(place, Classification()) for place in range(len(items))]

    def _batches(self, ratings: Ratings) -> Iterator[Sequence[int]]:
        """Items that tried to steer are asked about apart: a model that obeys one of them spoils no other item."""
        for is_steering in (False, True):
            places = [at for at, rated in enumerate(ratings.rated) if rated.was_steering is is_steering]
            for at in range(0, len(places), self._batch):
                yield places[at : at + self._batch]

    async def _ask(self, ratings: Ratings, this_round: _Round) -> Sequence[Classification | None]:
        offered = _offered(ratings)
        items = [rated.item for rated in ratings.rated]
        try:
            async with self._places:
                if this_round.is_over:
                    return [None] * len(items)
                self._keep_to_budget()
                schema = schema_for(offered, len(items))
                reply = await self._text.reply(instructions_for(offered), data_of(items), schema)
            answers = answers_in(reply, len(items), frozenset(skill.id for skill in offered))
        except ToolscriptError as error:
            this_round.failures.append(error)
            this_round.is_over |= not isinstance(error, Rejected)
            return [None] * len(items)
        return [
            _checked(answer, rated, ratings.skills) for answer, rated in zip(answers, ratings.rated, strict=True)
        ]

    def _keep_to_budget(self) -> None:
        spent = self._text.usage.tokens - self._spent_before
        if self._token_budget is not None and spent >= self._token_budget:
            raise Unavailable(
                f"the language model's budget of {self._token_budget} tokens is spent",
                hint="allow more tokens; until then rules classify",
            )


def _part(ratings: Ratings, places: Sequence[int]) -> Ratings:
    return Ratings(ratings.skills, [ratings.rated[place] for place in places])


def _failure(this_round: _Round, calls: int) -> ToolscriptError | None:
    """What says that the endpoint is no use now. One call that is refused, or without a usable answer, may be the
    doing of one item: it must not cost the others their classifier."""
    gone = [error for error in this_round.failures if not isinstance(error, Rejected)]
    if gone:
        return gone[0]
    return this_round.failures[0] if 1 < calls == len(this_round.failures) else None


def _offered(ratings: Ratings) -> Sequence[Skill]:
    """A prompt has a bound: of many skills, those that come first for some item of the batch."""
    if len(ratings.skills) <= MOST_SKILLS_OFFERED:
        return ratings.skills
    order = np.argsort(-np.array([rated.scores for rated in ratings.rated]), axis=1, kind="stable")
    best = list(dict.fromkeys(order.T.ravel().tolist()))[:MOST_SKILLS_OFFERED]
    return [ratings.skills[row] for row in sorted(best)]


def _checked(answer: Classification | None, rated: Rated, skills: Sequence[Skill]) -> Classification | None:
    """An item that tried to steer gets nothing that is far from what it is, and has no skill made for it."""
    if answer is None or not rated.was_steering:
        return answer
    likely = {
        skill.id
        for skill, score in zip(skills, rated.scores, strict=True)
        if confidence_of(score) >= LEAST_FOR_STEERING
    }
    kept = tuple(
        replace(one, reason=f"{one.reason}; {LEFT_OUT}") for one in answer.assignments if one.skill_id in likely
    )
    return Classification(kept) if kept else None
