"""POST /api/v1/search, and its stages alone: GET /api/v1/search/skills and GET /api/v1/search/tools."""

from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from toolscript.model.items import ItemKind
from toolscript.model.queries import MAX_LIMIT, MAX_SKILLS, USUAL, SearchType, SkillQuery, Strategy, ToolQuery
from toolscript.model.results import SkillAnswer, ToolAnswer
from toolscript.surfaces.http.errors import documented
from toolscript.surfaces.http.search_answers import search_response, skills_found, tools_found
from toolscript.surfaces.http.search_models import (
    QUERY_TEXT,
    SEARCH_TYPE,
    SearchRequest,
    SearchResponse,
    SkillMatch,
    ToolFound,
)

DEGRADED_HEADER = "X-Toolscript-Degraded"

Text = Annotated[
    str,
    Query(description="What the tool should do, in plain words.", json_schema_extra=dict[str, Any](QUERY_TEXT)),
]
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            DEGRADED_HEADER: {"description": "The parts that failed, if any did.", "schema": {"type": "string"}}
        }
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}


class AsksCatalog(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


def tool_search_routes(search: AsksCatalog, checked: type[APIRoute] = APIRoute) -> APIRouter:
    """`checked` routes know who asks, and how often it may."""
    router = APIRouter(prefix="/api/v1/search", tags=["tools"], route_class=checked)

    @router.post("", response_model=SearchResponse, responses=ANSWERS, summary="Search tools")
    async def search_tools(request: SearchRequest) -> Response:
        answer = await search.search(request.as_query())
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
        answer = await search.skills(SkillQuery(query, limit, threshold, search_type))
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
                search_type,
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
