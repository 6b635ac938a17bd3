"""Fifty tools with every kind of endpoint: each gets a valid classification in time."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.core.llm.text_endpoint import Scripted, TextEndpoint, completion
from tests.unit.tools.classify.benign_tools import benign_tools
from tests.unit.tools.classify.builders import default_skills, unclassified
from tests.unit.tools.classify.models import answer, assignment, honest, items_in, offered
from toolscript.core.items import AssignedBy, valid_assignments
from toolscript.core.llm.openai import OpenAITextModel
from toolscript.core.taxonomy import Classification, Unclassified
from toolscript.testing import HashEmbedder
from toolscript.tools.classify.llm import LlmClassifier
from toolscript.tools.classify.rules import FallbackClassifier, RulesClassifier

pytestmark = pytest.mark.slow

SKILLS = default_skills()
KNOWN = frozenset(skill.id for skill in SKILLS)
TOOLS = benign_tools()[:50]

MAX_SECONDS = 20.0
# A long timeout for endpoints that answer, however busy the machine is; a short one for those that do not.
PATIENT, IMPATIENT = 8.0, 0.5

Request = dict[str, Any]


def each(what: Callable[[Request, int], object]) -> Callable[[Request], object]:
    return lambda request: {"items": [what(request, item["item"]) for item in items_in(request)]}


def forty(request: Request, number: int) -> object:
    return answer(number, *(assignment(skill) for skill in (offered(request) * 2)[:40]))


# Replies of a model, and whether they are usable.
REPLIES: dict[str, tuple[Callable[[Request], object], bool]] = {
    "valid": (honest, True),
    "forty assignments": (each(forty), True),
    "unknown skills": (each(lambda _, number: answer(number, assignment("no_such_skill"))), False),
    "confidence of 7": (each(lambda request, number: answer(number, assignment(offered(request)[0], 7))), False),
    "confidence in words": (
        each(lambda request, number: answer(number, assignment(offered(request)[0], "high"))),
        False,
    ),
    "a list of texts": (each(lambda _, number: "mail"), False),
    "no list": (lambda request: {"items": {"1": "mail"}}, False),
    "another object": (lambda request: {"answer": 42}, False),
    "no object": (lambda request: ["mail"], False),
    "always the first item": (each(lambda request, number: answer(1, assignment(offered(request)[0]))), False),
    "the item as text": (each(lambda request, number: {**answer(number), "item": str(number)}), False),
}

# Failures of an endpoint.
FAILING: dict[str, Scripted] = {
    "never goes on": Scripted(b"", hangs_before_body=True),
    "dribbles": Scripted(json.dumps(completion("{}")).encode(), dribbles=True),
    "limits the rate": Scripted(b"{}", 429),
    "limits the rate for a minute": Scripted(b"{}", 429, (("Retry-After", "60"),)),
    "limits the rate for a moment": Scripted(b"{}", 429, (("Retry-After-Ms", "5"),)),
    "fails": Scripted(b"{}", 500),
    "is not ours": Scripted(b"{}", 401),
    "is something else": Scripted(b"<html>hello</html>"),
    "says nothing": Scripted(b""),
    "cuts JSON off": Scripted(json.dumps(completion('{"items": [{"item": 1, ')).encode()),
    "talks": Scripted(json.dumps(completion("Sure! Here is the JSON you asked for:")).encode()),
    "has no end": Scripted(json.dumps(completion("{}", ended="length")).encode()),
}


async def classified(
    endpoint: TextEndpoint, patience: float = PATIENT
) -> tuple[Sequence[Classification], Sequence[Classification]]:
    """Return the classifications, and those of the rules."""
    embedder = HashEmbedder()
    items: list[Unclassified] = await unclassified(embedder, TOOLS)
    rules = RulesClassifier(embedder)
    text = OpenAITextModel(endpoint.url, "m", timeout_seconds=patience, deadline_seconds=2 * patience, retries=1)
    began = time.monotonic()
    answers = await FallbackClassifier(LlmClassifier(text, rules), rules).classify(items, SKILLS)
    assert time.monotonic() - began < MAX_SECONDS
    await text.close()
    return answers, await rules.classify(items, SKILLS)


def are_valid(answers: Sequence[Classification]) -> bool:
    return all(valid_assignments(answer.assignments, KNOWN) == answer.assignments for answer in answers)


@pytest.mark.states("S3-102")
@pytest.mark.requirement("SK-004", "SK-005")
@pytest.mark.parametrize("reply", REPLIES)
async def test_every_tool_gets_a_valid_classification_whatever_the_model_returns(reply: str) -> None:
    model, is_usable = REPLIES[reply]
    with TextEndpoint(model=model) as endpoint:
        answers, by_rules = await classified(endpoint)
        assert len(endpoint.asked) == 5
    assert are_valid(answers)
    if is_usable:
        assert {assigned.source for answer in answers for assigned in answer.assignments} == {AssignedBy.LLM}
        assert all(answer.assignments for answer in answers)
    else:
        assert list(answers) == list(by_rules)


@pytest.mark.requirement("SK-004", "SK-005")
@pytest.mark.parametrize("failing", FAILING)
async def test_the_rules_classify_however_an_endpoint_fails(failing: str) -> None:
    with TextEndpoint() as endpoint:
        endpoint.always = FAILING[failing]
        answers, by_rules = await classified(endpoint, IMPATIENT)
        assert endpoint.asked
    assert list(answers) == list(by_rules)
    assert sum(1 for answer in answers if answer.assignments) > 25


async def test_an_endpoint_that_fails_for_a_moment_is_retried() -> None:
    with TextEndpoint(model=honest) as endpoint:
        for status in (429, 500, 503):
            endpoint.answer_once({}, status, ("Retry-After-Ms", "5"))
        answers, _ = await classified(endpoint)
    assert {assigned.source for answer in answers for assigned in answer.assignments} == {AssignedBy.LLM}
