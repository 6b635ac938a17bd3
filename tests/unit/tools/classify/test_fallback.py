"""A classifier with a fallback: which one answers, and when a failed one is probed again."""

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


class ScriptedClassifier:
    """Returns scripted answers or raises an error; records the number of items of each call."""

    def __init__(self, *answers: Classification, error: Exception | None = None) -> None:
        self.answers = answers
        self.error = error
        self.calls: list[int] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.was_called = asyncio.Event()

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        self.calls.append(len(items))
        self.was_called.set()
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
    return [str(assignment.source) for answer in answers for assignment in answer.assignments]


async def test_the_answer_of_the_first_classifier_is_used() -> None:
    second = ScriptedClassifier()
    classifier = FallbackClassifier(ScriptedClassifier(*[by(AssignedBy.LLM)] * 3), second)
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3
    assert second.calls == []


async def test_the_second_classifier_fills_the_gaps_of_the_first() -> None:
    first = ScriptedClassifier(by(AssignedBy.LLM), Classification(), SUGGESTED)
    second = ScriptedClassifier(by(AssignedBy.RULES))
    answers = await FallbackClassifier(first, second).classify(ITEMS, SKILLS)
    assert [ids_of(answer) for answer in answers] == [["mail"], ["mail"], []]
    assert sources(answers) == ["llm", "rules"]
    assert answers[2] == SUGGESTED
    assert second.calls == [1]


@pytest.mark.parametrize("kind", [Unavailable, Rejected, SetupError])
async def test_the_second_classifier_answers_when_the_first_raises(kind: type[ToolscriptError]) -> None:
    second = ScriptedClassifier(*[by(AssignedBy.RULES)] * 3)
    classifier = FallbackClassifier(ScriptedClassifier(error=kind("no")), second)
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["rules"] * 3


async def test_a_programming_error_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await FallbackClassifier(ScriptedClassifier(error=ZeroDivisionError()), ScriptedClassifier()).classify(
            ITEMS, SKILLS
        )


async def test_no_classifier_is_called_without_items() -> None:
    first, second = ScriptedClassifier(), ScriptedClassifier()
    assert await FallbackClassifier(first, second).classify([], SKILLS) == []
    assert first.calls == second.calls == []


async def test_a_classifier_that_keeps_failing_is_paused_for_longer_each_time() -> None:
    clock, first = Clock(), ScriptedClassifier(error=Unavailable("gone"))
    classifier = FallbackClassifier(first, ScriptedClassifier(*[by(AssignedBy.RULES)] * 3), clock)
    for failures in range(8):
        pause = min(FIRST_PAUSE * 2**failures, MAX_PAUSE)
        await classifier.classify(ITEMS, SKILLS)
        assert len(first.calls) == failures + 1
        clock.time += pause - 1
        await classifier.classify(ITEMS, SKILLS)
        assert len(first.calls) == failures + 1
        clock.time += 1


async def test_a_classifier_that_answers_again_is_used_again() -> None:
    clock, first = Clock(), ScriptedClassifier(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, ScriptedClassifier(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    first.error, clock.time = None, clock.time + FIRST_PAUSE
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3
    first.error = Unavailable("gone again")
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    await classifier.classify(ITEMS, SKILLS)
    assert len(first.calls) == 4


async def test_only_one_call_at_a_time_probes_a_failed_classifier() -> None:
    clock, first = Clock(), ScriptedClassifier(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, ScriptedClassifier(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    first.error = None
    first.may_answer.clear()
    first.was_called.clear()
    trying = asyncio.create_task(classifier.classify(ITEMS, SKILLS))
    await first.was_called.wait()
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["rules"] * 3
    first.may_answer.set()
    assert sources(await trying) == ["llm"] * 3


async def test_a_cancelled_probe_does_not_block_later_probes() -> None:
    clock, first = Clock(), ScriptedClassifier(*[by(AssignedBy.LLM)] * 3, error=Unavailable("gone"))
    classifier = FallbackClassifier(first, ScriptedClassifier(*[by(AssignedBy.RULES)] * 3), clock)
    await classifier.classify(ITEMS, SKILLS)
    clock.time += FIRST_PAUSE
    first.error = None
    first.may_answer.clear()
    first.was_called.clear()
    trying = asyncio.create_task(classifier.classify(ITEMS, SKILLS))
    await first.was_called.wait()
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    first.may_answer.set()
    assert sources(await classifier.classify(ITEMS, SKILLS)) == ["llm"] * 3


async def test_each_pause_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    classifier = FallbackClassifier(
        ScriptedClassifier(error=Unavailable("gone")), ScriptedClassifier(*[by(AssignedBy.RULES)] * 3), clock
    )
    with caplog.at_level(logging.WARNING, "toolscript"):
        await asyncio.gather(*(classifier.classify(ITEMS, SKILLS) for _ in range(4)))
        await classifier.classify(ITEMS, SKILLS)
        assert [record.message for record in caplog.records] == ["rules classify for the next 30 seconds: gone"]
        clock.time += FIRST_PAUSE
        await classifier.classify(ITEMS, SKILLS)
    assert [record.message for record in caplog.records][1:] == ["rules classify for the next 60 seconds: gone"]
