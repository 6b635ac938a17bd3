"""How often the rules are right about the golden tools, and whether their confidence is calibrated."""

import asyncio
import json
from collections.abc import Iterator, Sequence

import pytest

from tests.unit.tools.classify.benign_tools import GOLDEN, benign_tools
from tests.unit.tools.classify.builders import default_skills, unclassified
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.taxonomy import Classification
from toolscript.tools.classify.rules import RulesClassifier

LABELS: dict[str, list[str]] = {
    row["id"]: row["skill_ids"]
    for row in map(json.loads, (GOLDEN.parent / "skills.jsonl").read_text("utf-8").splitlines())
}

pytestmark = pytest.mark.requirement("SK-005")

Answers = Sequence[tuple[list[str], Classification]]


@pytest.fixture(scope="module")
def answers(model_folder: str) -> Iterator[Answers]:
    embedder = LocalEmbedder(model_folder)
    yield asyncio.run(classify_golden(embedder))
    embedder.close()


async def classify_golden(embedder: LocalEmbedder) -> Answers:
    items = [item for item in benign_tools() if item.key in LABELS]
    classifications = await RulesClassifier(embedder).classify(
        await unclassified(embedder, items), default_skills()
    )
    return [(LABELS[item.key], answer) for item, answer in zip(items, classifications, strict=True)]


def test_most_tools_are_in_the_skill_that_people_chose(answers: Answers) -> None:
    right = [
        labels for labels, answer in answers if answer.assignments and answer.assignments[0].skill_id in labels
    ]
    assert len(right) / len(answers) > 0.85


def test_assignments_are_nearly_always_right(answers: Answers) -> None:
    is_right = [assignment.skill_id in labels for labels, answer in answers for assignment in answer.assignments]
    assert sum(is_right) / len(is_right) > 0.85


def test_confidence_means_how_often_it_is_right(answers: Answers) -> None:
    sure = [
        assignment.skill_id in labels
        for labels, answer in answers
        for assignment in answer.assignments
        if assignment.confidence >= 0.9
    ]
    half = [
        assignment.skill_id in labels
        for labels, answer in answers
        for assignment in answer.assignments
        if assignment.confidence < 0.75
    ]
    assert sum(sure) / len(sure) > 0.95
    assert 0.35 < sum(half) / len(half) < 0.85
