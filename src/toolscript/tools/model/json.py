"""Parses the service's HTTP responses for a client. Invalid data raises."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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

Json = Mapping[str, Any]


def answer_from_json(data: Json, query: str) -> ToolAnswer:
    """Parse the answer to this query."""
    metadata: Json = data["metadata"]
    used, unskilled, weights = metadata["skill_ids"], metadata["unskilled_count"], metadata["weights_version"]
    return ToolAnswer(
        query=query,
        hits=tuple(map(_hit, _list(data["results"]))),
        candidate_count=int(metadata["candidate_count"]),
        search_type_used=_text(metadata["search_type"]),
        timings=_timings(metadata),
        degraded=_texts(metadata["degraded"]),
        index=_text(metadata["index_version"]),
        near_misses=tuple(map(_candidate, _list(metadata["near_misses"]))),
        good_match=metadata["good_match"],
        unmatched=_texts(metadata["unmatched_words"]),
        strategy_used=Strategy(metadata["strategy"]),
        skills=_skills(metadata["matched_skills"]),
        skill_ids_used=None if used is None else _texts(used),
        unskilled_count=None if unskilled is None else int(unskilled),
        absence=None if metadata["why_not"] is None else _absence(metadata["why_not"]),
        weights_version=None if weights is None else _text(weights),
    )


def skill_answer_from_json(data: Json) -> SkillAnswer:
    metadata: Json = data["metadata"]
    return SkillAnswer(
        skills=_skills(data["results"]),
        degraded=_texts(metadata["degraded"]),
        search_type_used=_text(metadata["search_type"]),
        took_ms=float(metadata["took_ms"]),
        index=_text(metadata["index_version"]),
    )


def _skills(data: Sequence[Json]) -> tuple[MatchedSkill, ...]:
    return tuple(
        MatchedSkill(
            id=_text(skill["id"]),
            name=_text(skill["name"]),
            description=_text(skill["description"]),
            score=_number(skill["score"]),
            tool_count=int(skill["tool_count"]),
            matched_by=MatchedBy(skill["matched_by"]),
        )
        for skill in _list(data)
    )


def _hit(data: Json) -> ToolHit:
    primary = data["primary_skill_id"]
    return replace(
        _candidate(data),
        skill_ids=_texts(data["skill_ids"]),
        primary_skill_id=None if primary is None else _text(primary),
        schemas=Schemas(data["input_schema"], data["output_schema"], data["annotations"]),
        explanation=_explanation(data["explanation"]),
    )


def _candidate(data: Json) -> ToolHit:
    """Parse a near miss, which comes without skills and schemas."""
    return ToolHit(
        id=int(data["id"]),
        kind=ItemKind(data["kind"]),
        server=_text(data["server"]),
        name=_text(data["name"]),
        description=_text(data["description"]),
        score=float(data["score"]),
        confidence=_number(data["confidence"]),
    )


def _absence(data: Json) -> WhyNotAnswer:
    return WhyNotAnswer(
        about=_text(data["about"]),
        reason=AbsenceReason(data["reason"]),
        message=_text(data["message"]),
        id=None if data["id"] is None else int(data["id"]),
        name=_text(data["name"]),
        others=_texts(data["others"]),
        score=_number(data["score"]),
        explanation=_explanation(data["explanation"]),
        skill_ids=_texts(data["skill_ids"]),
    )


def _explanation(data: Json | None) -> Explanation | None:
    if data is None:
        return None
    return Explanation(
        place=int(data["place"]),
        parts={_text(name): float(value) for name, value in data["parts"].items()},
        similarity=_number(data["similarity"]),
        word_score=_number(data["word_score"]),
        matched_skills=_texts(data["matched_skills"]),
    )


def _timings(metadata: Json) -> Timings:
    stages: Json = metadata["stages_ms"]
    return Timings(
        query_embedding=float(stages["embedding"]),
        skill_search=float(stages["skills"]),
        tool_search=float(stages["tools"]),
        ranking=float(stages["ranking"]),
        schema_load=float(stages["schemas"]),
        total=float(metadata["took_ms"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is not a string")
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError("it is not a list")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
