"""POST /api/v1/search, and its single stages: GET /api/v1/search/skills and GET /api/v1/search/tools."""

from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import QUERY_TEXT, json_response
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.query import MAX_SKILLS, USUAL, SkillQuery, Strategy, ToolQuery
from toolscript.tools.schemas.search import (
    SEARCH_TYPE,
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
            DEGRADED_HEADER: {"description": "The parts that failed, if any.", "schema": {"type": "string"}}
        }
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}


Text = Annotated[
    str,
    Query(description="What the tool should do, in plain words.", json_schema_extra=dict[str, Any](QUERY_TEXT)),
]


class SearchesCatalog(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


def tool_search_routes(
    search: SearchesCatalog, checked: type[APIRoute] = APIRoute, default: SearchType = SearchType.HYBRID
) -> APIRouter:
    """`checked` routes authenticate and rate-limit; `default` is the search type of requests without one."""
    router = APIRouter(prefix="/api/v1/search", tags=["tools"], route_class=checked)

    @router.post("", response_model=SearchResponse, responses=ANSWERS, summary="Search tools")
    async def search_tools(request: SearchRequest) -> Response:
        answer = await search.search(request.as_query(default))
        return _json(SearchResponse.of(answer), answer.degraded)

    @router.get(
        "/skills",
        response_model=list[SkillMatch],
        responses=ANSWERS,
        summary="The skill stage alone: at most `limit` skills, by vector first",
    )
    async def search_skills(
        query: Text,
        limit: Annotated[int, Query(ge=1, le=MAX_SKILLS, description="Maximum number of skills.")] = 5,
        threshold: Annotated[
            float, Query(ge=0, le=1, description="Minimum similarity of a skill matched by vector.")
        ] = USUAL.skill,
        search_type: Annotated[SearchType | None, Query(description=SEARCH_TYPE)] = None,
    ) -> Response:
        answer = await search.skills(
            SkillQuery(query, limit, threshold, resolve_search_type(search_type, default))
        )
        return _json(SkillsFound.of(answer.skills), answer.degraded)

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
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description="Minimum similarity.")] = USUAL.tool,
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
        return _json(ToolsFound.of(answer), answer.degraded)

    return router


def _json(body: BaseModel, degraded: tuple[str, ...]) -> Response:
    return json_response(body, {DEGRADED_HEADER: ",".join(degraded)} if degraded else None)
