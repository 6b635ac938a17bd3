"""POST /api/v1/search, and its stages alone: GET /api/v1/search/skills and GET /api/v1/search/tools."""

from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import QUERY_TEXT
from toolscript.tools.model.answer import Absence, Explanation, MatchedSkill, SkillAnswer, ToolAnswer, ToolHit
from toolscript.tools.model.query import MAX_SKILLS, USUAL, SkillQuery, Strategy, ToolQuery
from toolscript.tools.schemas import (
    SEARCH_TYPE,
    AbsenceModel,
    EnrichedTool,
    ExplanationModel,
    Metadata,
    NearMiss,
    SearchRequest,
    SearchResponse,
    SkillMatch,
    SkillsFound,
    ToolFound,
    ToolsFound,
)

DEGRADED_HEADER = "X-Toolscript-Degraded"

ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            DEGRADED_HEADER: {"description": "The parts that failed, if any did.", "schema": {"type": "string"}}
        }
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}


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


Text = Annotated[
    str,
    Query(description="What the tool should do, in plain words.", json_schema_extra=dict[str, Any](QUERY_TEXT)),
]


class AsksCatalog(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


def tool_search_routes(
    search: AsksCatalog, checked: type[APIRoute] = APIRoute, default: SearchType = SearchType.HYBRID
) -> APIRouter:
    """`checked` routes know who asks, and how often it may; `default` is for searches that name no type."""
    router = APIRouter(prefix="/api/v1/search", tags=["tools"], route_class=checked)

    @router.post("", response_model=SearchResponse, responses=ANSWERS, summary="Search tools")
    async def search_tools(request: SearchRequest) -> Response:
        answer = await search.search(request.as_query(default))
        return _json(search_response(answer), answer.degraded)

    @router.get(
        "/skills",
        response_model=list[SkillMatch],
        responses=ANSWERS,
        summary="The skill stage alone: at most `limit` skills, by vector first",
    )
    async def search_skills(
        query: Text,
        limit: Annotated[int, Query(ge=1, le=MAX_SKILLS, description="Most skills returned.")] = 5,
        threshold: Annotated[
            float, Query(ge=0, le=1, description="Least similarity of a skill matched by vector.")
        ] = USUAL.skill,
        search_type: Annotated[SearchType | None, Query(description=SEARCH_TYPE)] = None,
    ) -> Response:
        answer = await search.skills(
            SkillQuery(query, limit, threshold, resolve_search_type(search_type, default))
        )
        return _json(skills_found(answer.skills), answer.degraded)

    @router.get(
        "/tools",
        response_model=list[ToolFound],
        responses=ANSWERS,
        summary="Search all items, or those of named skills",
    )
    async def search_tools_only(
        query: Text,
        skill_ids: Annotated[str, Query(description="Only items of any of these skills, comma-separated.")] = "",
        item_type: Annotated[ItemKind | None, Query(description="Only items of this kind.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items returned.")] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description="Least similarity.")] = USUAL.tool,
        search_type: Annotated[SearchType | None, Query(description=SEARCH_TYPE)] = None,
    ) -> Response:
        skills = tuple(skill.strip() for skill in skill_ids.split(",") if skill.strip())
        answer = await search.search(
            ToolQuery(
                query,
                item_type,
                limit,
                threshold,
                resolve_search_type(search_type, default),
                Strategy.DIRECT,
                include_schemas=False,
                skill_ids=skills,
            )
        )
        return _json(tools_found(answer), answer.degraded)

    return router


def _json(body: BaseModel, degraded: tuple[str, ...]) -> Response:
    """Serialised once, here: the framework would validate what we have just built."""
    headers = {DEGRADED_HEADER: ",".join(degraded)} if degraded else None
    return Response(body.model_dump_json(), media_type="application/json", headers=headers)
