"""One classifier behind another: who answers what, and when a failing one is asked again."""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.tools.classify.builders import SKILLS, ids_of, tool
from toolscript.core.errors import Rejected, SetupError, ToolscriptError, Unavailable
from toolscript.core.items import AssignedBy, Assignment
from toolscript.core.taxonomy import Classification, Skill, SuggestedSkill, Unclassified
from toolscript.tools.classify.rules import FIRST_PAUSE, MAX_PAUSE, FallbackClassifier

pytestmark = pytest.mark.requirement("SK-005")

ITEMS = [Unclassified(tool(name), np.ones(3, dtype=np.float32)) for name in ("one", "two", "three")]
SUGGESTED = Classification(suggestion=SuggestedSkill("New"))


def by(source: AssignedBy) -> Classification:
    return Classification((Assignment("mail", 0.9, source),))


class Given:
    """Answers what it was given, or fails with it; counts how often it was asked, and for how many items."""

    def __init__(self, *answers: Classification, error: Exception | None = None) -> None:
        self.answers = answers
        self.error = error
        self.calls: list[int] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.was_asked = asyncio.Event()

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        self.calls.append(len(items))
        self.was_asked.set()
        await self.may_answer.wait()
        if self.error:
            raise self.error
        return list(self.answers)[: len(items)]


class Clock:
    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


def sources(answers: Sequence[Classification]) -> list[str]:
    return [str(one.source) for answer in answers for one in answer.assignments]


async def test_what_the_first_answers_is_the_answer() -> None:
    second = Given()
    classifier = FallbackClassifier(Given(*[by(AssignedBy.LLM)] * 3), second)
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3
    assert second.calls == []


async def test_what_the_first_leaves_open_the_second_answers_in_its_place() -> None:
    first = Given(by(AssignedBy.LLM), Classification(), SUGGESTED)
    second = Given(by(AssignedBy.RULES))
    answers = await FallbackClassifier(first, second).classify(ITEMS, SKILLS)
    assert [ids_of(answer) for answer in answers] == [["mail"], ["mail"], []]
    assert sources(answers) == ["llm", "rules"]
    assert answers[2] == SUGGESTED
    assert second.calls == [1]


@pytest.mark.parametrize("kind", [Unavailable, Rejected, SetupError])
async def test_what_the_first_refuses_the_second_answers(kind: type[ToolscriptError]) -> None:
    second = Given(*[by(AssignedBy.RULES)] * 3)
    classifier = FallbackClassifier(Given(error=kind("no")), second)
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["rules"] * 3


async def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await FallbackClassifier(Given(error=ZeroDivisionError()), Given()).classify(ITEMS, SKILLS)


async def test_nobody_is_asked_about_nothing() -> None:
    first, second = Given(), Given()
    assert await FallbackClassifier(first, second).classify([], SKILLS) == []
    assert first.calls == second.calls == []


async def test_one_that_failed_is_left_alone_for_ever_longer() -> None:
    clock, first = Clock(), Given(error=Unavailable("gone"))
    classifier = FallbackClassifier(first, Given(*[by(AssignedBy.RULES)] * 3), clock)
    for failures in range(8):
        pause = min(FIRST_PAUSE * 2**failures, MAX_PAUSE)
        await classifier.classify(ITEMS, SKILLS)
        assert len(first.calls) == failures + 1
        clock.time += pause - 1
        await classifier.classify(ITEMS, SKILLS)
        assert len(first.calls) == failures + 1
        clock.time += 1


async def test_one_that_answers_again_is_trusted_again() -> None:
    clock, first = Clock(), Given(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, Given(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    first.error, clock.time = None, clock.time + FIRST_PAUSE
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3
    first.error = Unavailable("gone again")
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    await classifier.classify(ITEMS, SKILLS)
    assert len(first.calls) == 4


async def test_one_call_at_a_time_tries_again() -> None:
    clock, first = Clock(), Given(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, Given(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    first.error = None
    first.may_answer.clear()
    first.was_asked.clear()
    trying = asyncio.create_task(classifier.classify(ITEMS, SKILLS))
    await first.was_asked.wait()
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["rules"] * 3
    first.may_answer.set()
    assert sources(await trying) == ["llm"] * 3


async def test_a_try_that_is_cancelled_does_not_keep_others_from_trying() -> None:
    clock, first = Clock(), Given(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, Given(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    first.error = None
    first.may_answer.clear()
    first.was_asked.clear()
    trying = asyncio.create_task(classifier.classify(ITEMS, SKILLS))
    await first.was_asked.wait()
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    first.may_answer.set()
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3


async def test_each_pause_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    classifier = FallbackClassifier(Given(error=Unavailable("gone")), Given(*[by(AssignedBy.RULES)] * 3), clock)
    with caplog.at_level(logging.WARNING, "toolscript"):
        await asyncio.gather(*(classifier.classify(ITEMS, SKILLS) for _ in range(4)))
        await classifier.classify(ITEMS, SKILLS)
        assert [record.message for record in caplog.records] == ["rules classify for the next 30 seconds: gone"]
        clock.time += FIRST_PAUSE
        await classifier.classify(ITEMS, SKILLS)
    assert [record.message for record in caplog.records][1:] == ["rules classify for the next 60 seconds: gone"]
