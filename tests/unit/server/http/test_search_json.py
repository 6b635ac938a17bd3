"""A client reads all of an answer, and returns it unchanged."""

import json
from dataclasses import replace

import pytest

from toolscript.client import answers
from toolscript.core.items import ItemKind, Schemas
from toolscript.tools.model.answer import (
    AbsenceReason,
    Explanation,
    MatchedBy,
    MatchedSkill,
    SkillAnswer,
    Timings,
    ToolAnswer,
    ToolHit,
    WhyNotAnswer,
)
from toolscript.tools.model.query import Strategy
from toolscript.tools.schemas.search import SkillSearchAnswer, ToolSearchAnswer

EXPLAINED = Explanation(3, {"words": 0.5, "meaning": -0.25}, 0.5, None, ("files",))
NEAR = ToolHit(8, ItemKind.TOOL, "disk", "write", "Write\x1b[2J", 0.125, confidence=0.5)
SKILLS = (
    MatchedSkill("files", "Files", "About files", 0.5, 3, MatchedBy.VECTOR),
    MatchedSkill("mail", "Mail", "About mail", None, 0, MatchedBy.WORDS),
)
FULL = ToolAnswer(
    query="read 💥",
    hits=(
        ToolHit(7, ItemKind.PROMPT, "disk", "read", "Read", 0.75, ("files", "mail"), "files", Schemas(), 0.5),
        replace(NEAR, id=9, schemas=Schemas({"a": 1}, {"b": 2}, {"c": 3}), confidence=None, explanation=EXPLAINED),
    ),
    candidate_count=12,
    search_type_used="hybrid",
    timings=Timings(1.5, 2.5, 3.5, 0.5, 4.5, 12.5),
    degraded=("embedding", "schemas"),
    index="abc",
    near_misses=(NEAR, replace(NEAR, id=10, confidence=None)),
    good_match=False,
    unmatched=("xylophone",),
    strategy_used=Strategy.HYBRID,
    skills=SKILLS,
    skill_ids_used=("files", "mail"),
    unskilled_count=24,
    weights_version="def",
    absence=WhyNotAnswer(
        "disk__x", AbsenceReason.BELOW_THRESHOLD, "it is", 11, "disk__x", 0.25, EXPLAINED, ("files",), ("disk__y",)
    ),
)
EMPTY = ToolAnswer("x", (), 0, "none", Timings(), good_match=None)


@pytest.mark.requirement("API-001")
@pytest.mark.parametrize(
    "answer",
    [
        FULL,
        EMPTY,
        replace(FULL, unskilled_count=None),
        replace(FULL, unskilled_count=0),
        *(replace(FULL, absence=WhyNotAnswer("a", reason, "why")) for reason in AbsenceReason),
        *(replace(FULL, strategy_used=strategy, skill_ids_used=None) for strategy in Strategy),
    ],
)
def test_an_answer_survives_a_round_trip(answer: ToolAnswer) -> None:
    data = json.loads(ToolSearchAnswer.of(answer, "1").model_dump_json())
    read = answers.ToolSearchAnswer.from_json(data)
    assert read.to_json() == data
    assert [hit.id for hit in read.results] == [hit.id for hit in answer.hits]
    assert read.metadata.strategy == answer.strategy_used
    assert (read.metadata.why_not is None) == (answer.absence is None)


def test_matched_skills_survive_a_round_trip() -> None:
    answer = SkillAnswer(SKILLS, ("skills",), "keyword", 2.5, "abc")
    data = json.loads(SkillSearchAnswer.of(answer, "1").model_dump_json())
    read = answers.SkillSearchAnswer.from_json(data)
    assert read.to_json() == data
    assert [(skill.id, skill.score) for skill in read.results] == [("files", 0.5), ("mail", None)]
    assert (read.query_id, read.metadata.took_ms, read.metadata.weights_version) == ("1", 2.5, None)
