"""What a search found, as it is answered over HTTP. Built once: nothing of it is validated again."""

from typing import Any

from toolscript.model.results import Absence, Explanation, MatchedSkill, ToolAnswer, ToolHit
from toolscript.surfaces.http.search_models import (
    AbsenceModel,
    EnrichedTool,
    ExplanationModel,
    Metadata,
    NearMiss,
    SearchResponse,
    SkillMatch,
    SkillsFound,
    ToolFound,
    ToolsFound,
)


def search_response(answer: ToolAnswer) -> SearchResponse:
    return SearchResponse.model_construct(
        query=answer.query,
        tools=[_enriched(hit) for hit in answer.hits],
        matched_skills=[_skill_match(skill) for skill in answer.skills],
        metadata=_metadata(answer),
        absence=None if answer.absence is None else _absence(answer.absence),
    )


def tools_found(answer: ToolAnswer) -> ToolsFound:
    return ToolsFound.model_construct([ToolFound.model_construct(**_found(hit)) for hit in answer.hits])


def skills_found(skills: tuple[MatchedSkill, ...]) -> SkillsFound:
    return SkillsFound.model_construct([_skill_match(skill) for skill in skills])


def _skill_match(skill: MatchedSkill) -> SkillMatch:
    return SkillMatch.model_construct(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        score=_rounded(skill.score),
        tool_count=skill.tool_count,
        matched_by=skill.matched_by,
    )


def _metadata(answer: ToolAnswer) -> Metadata:
    timings = answer.timings
    return Metadata.model_construct(
        strategy_used=answer.strategy_used,
        search_type_used=answer.search_type_used,
        skill_ids_used=None if answer.skill_ids_used is None else list(answer.skill_ids_used),
        stage1_skill_count=len(answer.skills),
        stage2_candidate_count=answer.candidate_count,
        final_count=len(answer.hits),
        unskilled_count=answer.unskilled_count,
        query_embedding_time_ms=round(timings.query_embedding, 3),
        skill_search_time_ms=round(timings.skill_search, 3),
        tool_search_time_ms=round(timings.tool_search, 3),
        ranking_time_ms=round(timings.ranking, 3),
        schema_load_time_ms=round(timings.schema_load, 3),
        total_time_ms=round(timings.total, 3),
        degraded=list(answer.degraded),
        index=answer.index,
        good_match=answer.good_match,
        unmatched_words=list(answer.unmatched),
        near_misses=[_near_miss(hit) for hit in answer.near_misses],
    )


def _near_miss(hit: ToolHit) -> NearMiss:
    found = _found(hit)
    return NearMiss.model_construct(**{name: found[name] for name in NearMiss.model_fields})


def _enriched(hit: ToolHit) -> EnrichedTool:
    schemas = hit.schemas
    return EnrichedTool.model_construct(
        **_found(hit),
        input_schema=schemas.input_schema,
        output_schema=schemas.output_schema,
        annotations=schemas.annotations,
        explanation=_explanation(hit.explanation),
    )


def _found(hit: ToolHit) -> dict[str, Any]:
    return {
        "id": str(hit.id),
        "db_id": hit.id,
        "type": hit.kind,
        "server": hit.server,
        "name": hit.name,
        "description": hit.description,
        "score": round(hit.score, 6),
        "confidence": None if hit.confidence is None else round(hit.confidence, 4),
        "skill_ids": list(hit.skill_ids),
        "primary_skill_id": hit.primary_skill_id,
    }


def _absence(absence: Absence) -> AbsenceModel:
    return AbsenceModel.model_construct(
        about=absence.about,
        reason=absence.reason,
        message=absence.message,
        id=None if absence.id is None else str(absence.id),
        name=absence.name,
        others=list(absence.others),
        score=_rounded(absence.score),
        skill_ids=list(absence.skill_ids),
        explanation=_explanation(absence.explanation),
    )


def _explanation(explanation: Explanation | None) -> ExplanationModel | None:
    if explanation is None:
        return None
    return ExplanationModel.model_construct(
        place=explanation.place,
        parts=dict(explanation.parts),
        similarity=_rounded(explanation.similarity),
        word_score=_rounded(explanation.word_score),
        matched_skills=list(explanation.matched_skills),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
