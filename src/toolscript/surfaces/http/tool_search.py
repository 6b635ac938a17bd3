"""POST /api/v1/search and GET /api/v1/search/tools."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, RootModel

from toolscript.model.items import ItemKind
from toolscript.model.queries import MAX_LIMIT, SearchType, Strategy, ToolQuery
from toolscript.model.results import ToolAnswer, ToolHit
from toolscript.search.tools import ToolSearch
from toolscript.surfaces.http.errors import documented

DEGRADED_HEADER = "X-Toolscript-Degraded"

Confidence = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="How likely this is the right item; null where one arm alone was asked for.",
    ),
]


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What the tool should do, in plain words; 1 to 1,000 characters.")
    item_type: ItemKind | None = Field(None, description="Only items of this kind.")
    limit: int = Field(5, ge=1, le=MAX_LIMIT, description="Most items returned.")
    tool_threshold: float = Field(0.3, ge=0, le=1, description="Least similarity of an item.")
    skill_limit: int = Field(3, ge=1, le=32, description="Most skills to route by; `direct` routes by none.")
    skill_threshold: float = Field(0.4, ge=0, le=1, description="Least similarity of a skill; unused by `direct`.")
    include_schemas: bool = Field(True, description="Load the schemas of the items returned.")
    strategy: Strategy = Field(Strategy.DIRECT, description="`direct` searches all items.")
    search_type: SearchType = Field(SearchType.HYBRID, description="Which arms retrieve: meaning, words or both.")


class ToolFound(BaseModel):
    id: str
    db_id: int
    type: ItemKind
    server: str
    name: str
    description: str
    score: float = Field(description="How similar it is to the query, 0 to 1; what thresholds are about.")
    confidence: Confidence
    skill_ids: list[str]
    primary_skill_id: str | None


class EnrichedTool(ToolFound):
    input_schema: dict[str, object] | None
    output_schema: dict[str, object] | None
    annotations: dict[str, object] | None


class NearMiss(BaseModel):
    id: str
    server: str
    name: str
    description: str
    score: float
    confidence: Confidence


class Metadata(BaseModel):
    strategy_used: Literal["direct"]
    search_type_used: Literal["semantic", "keyword", "hybrid", "none"]
    skill_ids_used: list[str] | None
    stage1_skill_count: int
    stage2_candidate_count: int
    final_count: int
    query_embedding_time_ms: float
    skill_search_time_ms: float
    tool_search_time_ms: float
    ranking_time_ms: float = Field(description="The ranking's part of `tool_search_time_ms`.")
    schema_load_time_ms: float
    total_time_ms: float
    degraded: list[str]
    index: str = Field(description="Fingerprint of the one index, and so of the one model, behind this answer.")
    good_match: bool | None = Field(
        description="The verdict on the best item, whatever the threshold: false, it is a guess. "
        "Null where one arm alone was asked for."
    )
    unmatched_words: list[str] = Field(description="Words of the query that none of the best candidates has.")
    near_misses: list[NearMiss] = Field(description="The best below the threshold, when nothing reaches it.")


class SearchResponse(BaseModel):
    query: str
    tools: list[EnrichedTool]
    matched_skills: list[dict[str, object]]
    metadata: Metadata


def tool_search_routes(search: ToolSearch) -> APIRouter:
    router = APIRouter(prefix="/api/v1/search", tags=["tools"])

    @router.post("", response_model=SearchResponse, responses=documented(400, 422, 500), summary="Search tools")
    async def search_tools(request: SearchRequest) -> Response:
        answer = await search.search(
            ToolQuery(
                text=request.query,
                kind=request.item_type,
                limit=request.limit,
                threshold=request.tool_threshold,
                search_type=request.search_type,
                strategy=request.strategy,
                include_schemas=request.include_schemas,
            )
        )
        return _json(_response(answer), answer)

    @router.get(
        "/tools",
        response_model=list[ToolFound],
        responses=documented(400, 422, 500),
        summary="Search, short form",
    )
    async def search_tools_only(
        query: Annotated[str, Query(description="What the tool should do, in plain words.")],
        skill_ids: Annotated[str, Query(description="Only items of any of these skills, comma-separated.")] = "",
        item_type: Annotated[ItemKind | None, Query(description="Only items of this kind.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Most items returned.")] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description="Least similarity.")] = 0.3,
        search_type: Annotated[SearchType, Query(description="Which arms retrieve.")] = SearchType.HYBRID,
    ) -> Response:
        skills = tuple(skill.strip() for skill in skill_ids.split(",") if skill.strip())
        wanted = ToolQuery(
            query, item_type, limit, threshold, search_type, include_schemas=False, skill_ids=skills
        )
        answer = await search.search(wanted)
        return _json(
            _Tools.model_construct([ToolFound.model_construct(**_found(hit)) for hit in answer.hits]), answer
        )

    return router


class _Tools(RootModel[list[ToolFound]]): ...


def _json(body: BaseModel, answer: ToolAnswer) -> Response:
    """Serialised once, here: the framework would validate what we have just built."""
    headers = {DEGRADED_HEADER: ",".join(answer.degraded)} if answer.degraded else None
    return Response(body.model_dump_json(), media_type="application/json", headers=headers)


def _response(answer: ToolAnswer) -> SearchResponse:
    return SearchResponse.model_construct(
        query=answer.query,
        tools=[_enriched(hit) for hit in answer.hits],
        matched_skills=[],
        metadata=_metadata(answer),
    )


def _metadata(answer: ToolAnswer) -> Metadata:
    timings = answer.timings
    return Metadata.model_construct(
        strategy_used="direct",
        search_type_used=answer.search_type_used,
        skill_ids_used=None,
        stage1_skill_count=0,
        stage2_candidate_count=answer.candidate_count,
        final_count=len(answer.hits),
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
