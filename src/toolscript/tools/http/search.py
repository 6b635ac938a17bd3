"""Tool and skill search: POST /api/v1/tools/search and /api/v1/skills/search, and the aliases /api/v1/search."""

from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from toolscript.core.items import ItemKind
from toolscript.core.namespaces import searched_namespaces
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType, resolve_search_type
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import QUERY_TEXT, json_response
from toolscript.core.web.request_context import API_PREFIX, new_query_id
from toolscript.core.web.routers import api_router
from toolscript.tools.http.access import Seen
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.query import MAX_SKILLS, USUAL, SkillQuery, Strategy, ToolQuery
from toolscript.tools.ports import RecordSearch
from toolscript.tools.schemas.search import (
    SEARCH_TYPE,
    SkillMatch,
    SkillSearchAnswer,
    SkillSearchRequest,
    ToolSearchAnswer,
    ToolSearchRequest,
)
from toolscript.tools.schemas.search_aliases import (
    SearchRequest,
    SearchResponse,
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
SearchTypeInQuery = Annotated[SearchType | None, Query(description=SEARCH_TYPE)]


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
    router = api_router(API_PREFIX, route_class=checked)
    _resources(router, service)
    _search_alias(router, service)
    _skill_alias(router, service)
    _tool_alias(router, service)
    return router


def _resources(router: APIRouter, service: SearchService) -> None:
    @router.post(
        "/tools/search",
        tags=["tools"],
        response_model=ToolSearchAnswer,
        responses=ANSWERS,
        summary="Search tools, routed by skills",
    )
    async def search_tools(request: Request, body: ToolSearchRequest, seen: Seen) -> Response:
        """Finds the tools for a request in plain words, with skills first, and says whether any of them fits."""
        query_id = new_query_id(request)
        answer = await service.search(body.as_query(service.default, seen), query_id)
        return _json(ToolSearchAnswer.of(answer, query_id), answer.degraded)

    @router.post(
        "/skills/search",
        tags=["skills"],
        response_model=SkillSearchAnswer,
        responses=ANSWERS,
        summary="Search skills: the first stage of a tool search alone",
    )
    async def search_skills(request: Request, body: SkillSearchRequest, seen: Seen) -> Response:
        """Finds the skills for a request. A tool search does this first; alone it shows where it would look."""
        query_id = new_query_id(request)
        answer = await service.catalog.skills(body.as_query(service.default, seen))
        return _json(SkillSearchAnswer.of(answer, query_id), answer.degraded)


def _search_alias(router: APIRouter, service: SearchService) -> None:
    @router.post(
        "/search",
        tags=["tools"],
        response_model=SearchResponse,
        responses=ANSWERS,
        summary="Search tools (alias)",
        deprecated=True,
    )
    async def search_catalog_alias(request: SearchRequest, seen: Seen) -> Response:
        """Alias of `POST /api/v1/tools/search` with its own field names."""
        answer = await service.search(request.as_query(service.default, seen))
        return _json(SearchResponse.of(answer), answer.degraded)


def _skill_alias(router: APIRouter, service: SearchService) -> None:
    @router.get(
        "/search/skills",
        tags=["skills"],
        response_model=list[SkillMatch],
        responses=ANSWERS,
        summary="Search skills: at most `limit`, by vector first (alias)",
        deprecated=True,
    )
    async def search_catalog_skills_alias(
        seen: Seen,
        query: Text,
        limit: Annotated[int, Query(ge=1, le=MAX_SKILLS, description="Maximum number of skills.")] = 5,
        threshold: Annotated[
            float, Query(ge=0, le=1, description="Minimum similarity of a skill matched by vector.")
        ] = USUAL.skill,
        search_type: SearchTypeInQuery = None,
    ) -> Response:
        """Alias of `POST /api/v1/skills/search` with its own field names: the answer is a bare list."""
        search_type = resolve_search_type(search_type, service.default)
        namespaces = searched_namespaces(seen)
        answer = await service.catalog.skills(SkillQuery(query, limit, threshold, search_type, namespaces))
        return _json(SkillsFound.of(answer.skills), answer.degraded)


def _tool_alias(router: APIRouter, service: SearchService) -> None:
    @router.get(
        "/search/tools",
        tags=["tools"],
        response_model=list[ToolFound],
        responses=ANSWERS,
        summary="Search all items, or those of named skills (alias)",
        deprecated=True,
    )
    async def search_catalog_tools_alias(
        seen: Seen,
        query: Text,
        skill_ids: Annotated[str, Query(description="Only items of any of these skills, comma-separated.")] = "",
        item_type: Annotated[ItemKind | None, Query(description="Only items of this kind.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items.")] = 10,
        threshold: Annotated[float, Query(ge=0, le=1, description="Minimum similarity.")] = USUAL.tool,
        search_type: SearchTypeInQuery = None,
    ) -> Response:
        """Alias of `POST /api/v1/tools/search` with its own field names: the answer is a bare list."""
        skills = tuple(skill.strip() for skill in skill_ids.split(",") if skill.strip())
        tool_query = ToolQuery(
            query,
            item_type,
            limit,
            threshold,
            resolve_search_type(search_type, service.default),
            Strategy.DIRECT,
            include_schemas=False,
            skill_ids=skills,
            namespaces=searched_namespaces(seen),
        )
        answer = await service.search(tool_query)
        return _json(ToolsFound.of(answer), answer.degraded)


def _json(body: BaseModel, degraded: tuple[str, ...]) -> Response:
    return json_response(body, {DEGRADED_HEADER: ",".join(degraded)} if degraded else None)
