"""Search of the catalog: POST /api/v1/search, and its stages alone: GET /api/v1/search/skills and .../tools."""

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from toolscript.core.items import ItemKind
from toolscript.core.namespaces import MAX_NAMESPACES, NAME_PATTERN, searched_namespaces
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import QUERY_TEXT, json_response
from toolscript.core.web.request_context import SEARCH_PATH, new_query_id
from toolscript.core.web.routers import api_router
from toolscript.tools.http.access import Seen
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.query import MAX_SKILLS, USUAL, SkillQuery, Strategy, ToolQuery
from toolscript.tools.ports import RecordSearch
from toolscript.tools.schemas.search import (
    NAMESPACES_SEARCHED,
    SEARCH_TYPE,
    SearchAnswer,
    SearchRequest,
    SkillMatch,
    SkillsFound,
    ToolMatch,
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
SearchTypeInQuery = Annotated[SearchType | None, Query(description=SEARCH_TYPE)]
NamespacesInQuery = Annotated[
    list[Annotated[str, Query(pattern=NAME_PATTERN)]],
    Query(default_factory=list, max_length=MAX_NAMESPACES, description=NAMESPACES_SEARCHED),
]


class SearchesCatalog(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


@dataclass(frozen=True)
class SearchService:
    """`default` is the search type of requests without one. `record` gets every search for tools that succeeds."""

    catalog: SearchesCatalog
    default: SearchType = SearchType.HYBRID
    record: RecordSearch | None = None

    async def search(self, query: ToolQuery, query_id: str = "") -> ToolAnswer:
        answer = await self.catalog.search(query)
        if self.record is not None:
            self.record(query, answer, query_id)
        return answer


def tool_search_routes(service: SearchService, checked: type[APIRoute]) -> APIRouter:
    """`checked` routes authenticate and rate-limit."""
    router = api_router(SEARCH_PATH, route_class=checked)
    _search(router, service)
    _skill_stage(router, service)
    _item_stage(router, service)
    return router


def _search(router: APIRouter, service: SearchService) -> None:
    @router.post(
        "",
        tags=["tools"],
        response_model=SearchAnswer,
        responses=ANSWERS,
        summary="Search tools, routed by skills",
    )
    async def search_tools(request: Request, body: SearchRequest, seen: Seen) -> Response:
        """Finds the tools for a request in plain words, with skills first, and says whether any of them fits."""
        query_id = new_query_id(request)
        answer = await service.search(body.as_query(service.default, seen), query_id)
        return _json(SearchAnswer.of(answer, query_id), answer.degraded)


def _skill_stage(router: APIRouter, service: SearchService) -> None:
    @router.get(
        "/skills",
        tags=["skills"],
        response_model=list[SkillMatch],
        responses=ANSWERS,
        summary="Search skills: the first stage of a search alone",
    )
    async def search_skills(
        seen: Seen,
        namespaces: NamespacesInQuery,
        query: Text,
        limit: Annotated[int, Query(ge=1, le=MAX_SKILLS, description="Maximum number of skills.")] = 5,
        threshold: Annotated[
            float, Query(ge=0, le=1, description="Minimum similarity of a skill matched by vector.")
        ] = USUAL.skill,
        search_type: SearchTypeInQuery = None,
    ) -> Response:
        """Finds the skills for a request, those matched by vector first: where a search would look."""
        search_type, searched = (
            resolve_search_type(search_type, service.default),
            searched_namespaces(seen, namespaces),
        )
        answer = await service.catalog.skills(SkillQuery(query, limit, threshold, search_type, searched))
        return _json(SkillsFound.of(answer), answer.degraded)


def _item_stage(router: APIRouter, service: SearchService) -> None:
    @router.get(
        "/tools",
        tags=["tools"],
        response_model=list[ToolMatch],
        responses=ANSWERS,
        summary="Search all items, or those of named skills: the second stage of a search alone",
    )
    async def search_items(
        request: Request,
        seen: Seen,
        namespaces: NamespacesInQuery,
        query: Text,
        skill_ids: Annotated[str, Query(description="Only items of any of these skills, comma-separated.")] = "",
        item_type: Annotated[ItemKind | None, Query(description="Only items of this kind.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description="Minimum similarity.")] = USUAL.tool,
        search_type: SearchTypeInQuery = None,
    ) -> Response:
        """Finds items without routing, and without their schemas."""
        tool_query = ToolQuery(
            query,
            item_type,
            limit,
            threshold,
            resolve_search_type(search_type, service.default),
            Strategy.DIRECT,
            include_schemas=False,
            skill_ids=tuple(skill.strip() for skill in skill_ids.split(",") if skill.strip()),
            namespaces=searched_namespaces(seen, namespaces),
        )
        answer = await service.search(tool_query, new_query_id(request))
        return _json(ToolsFound.of(answer), answer.degraded)


def _json(body: BaseModel, degraded: tuple[str, ...]) -> Response:
    return json_response(body, {DEGRADED_HEADER: ",".join(degraded)} if degraded else None)
