"""/search_knowledge, and the routes that lead from a hit to its source and its neighbours. All are read-only."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.routing import APIRoute

from toolscript.core.auth.model import Scope
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.retrieval.query import SearchType
from toolscript.core.web.auth import Identify, require_identity
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import json_response
from toolscript.knowledge.model.library import ID_PATTERN
from toolscript.knowledge.model.query import (
    MAX_NEIGHBOURS,
    MAX_SOURCES,
    KnowledgeQuery,
    PassageQuery,
    SourcesQuery,
)
from toolscript.knowledge.ports import LibrarySearch
from toolscript.knowledge.schemas import (
    KnowledgeParameters,
    KnowledgePassageShown,
    KnowledgeRequest,
    KnowledgeResponse,
    SourceShown,
    SourcesShown,
)

ANSWERS: dict[int | str, dict[str, Any]] = documented(400, 401, 403, 422, 429, 500, 503)
SourceId = Annotated[str, Path(description="As results name it.", pattern=ID_PATTERN)]


@dataclass(frozen=True)
class KnowledgeRoutes:
    """`search` None: there is no library. `search_type` is the default for requests without one."""

    search: LibrarySearch | None
    identity: Identify
    search_type: SearchType = SearchType.HYBRID


def knowledge_routes(knowledge: KnowledgeRoutes | None) -> APIRouter:
    """Return the routes. Operation ids equal the names of the MCP tools: each is the same function."""
    checked = require_identity(knowledge.identity, Scope.KNOWLEDGE_READ) if knowledge else APIRoute
    router = APIRouter(tags=["knowledge"], route_class=checked)
    search = knowledge.search if knowledge else None
    _add_search(router, search, knowledge.search_type if knowledge else SearchType.HYBRID)
    _add_sources(router, search)
    return router


def _add_search(router: APIRouter, knowledge: LibrarySearch | None, default: SearchType) -> None:
    @router.post(
        "/search_knowledge",
        response_model=KnowledgeResponse,
        responses=ANSWERS,
        operation_id="search_knowledge",
        summary="Search the library",
    )
    async def search_knowledge(
        parameters: Annotated[KnowledgeParameters, Query()], request: KnowledgeRequest | None = None
    ) -> Response:
        """Search chunks and extractions, dense and sparse (BM25), and return each hit with its position.

        Send the request as a JSON body, or without a body the same names in the query string.
        """
        answer = await _require_library(knowledge).search(_query(parameters, request, default))
        return json_response(KnowledgeResponse.of(answer))


def _add_sources(router: APIRouter, knowledge: LibrarySearch | None) -> None:
    @router.get(
        "/sources",
        response_model=SourcesShown,
        responses=ANSWERS,
        operation_id="list_sources",
        summary="List the sources of the library",
    )
    async def list_sources(
        limit: Annotated[int, Query(ge=1, le=MAX_SOURCES, description="Maximum number of sources per page.")] = 20,
        after: Annotated[str, Query(description="`next_after` of the page before.", max_length=24)] = "",
        type: Annotated[list[str] | None, Query(description="Only of any of these types.")] = None,  # noqa: A002
        topics: Annotated[list[str] | None, Query(description="Only with any of these topics.")] = None,
    ) -> Response:
        query = SourcesQuery(limit, after, tuple(type or ()), tuple(topics or ()))
        return json_response(SourcesShown.of(await _require_library(knowledge).sources(query)))

    @router.get(
        "/sources/{source_id}",
        response_model=SourceShown,
        responses=documented(401, 403, 404, 422, 429, 500, 503),
        operation_id="get_source",
        summary="One source",
    )
    async def get_source(source_id: SourceId) -> Response:
        return json_response(SourceShown.of(await _require_library(knowledge).source(source_id)))

    @router.get(
        "/passages/{chunk_id}",
        response_model=KnowledgePassageShown,
        responses=documented(401, 403, 404, 422, 429, 500, 503),
        operation_id="get_passage",
        summary="A chunk with its neighbours",
    )
    async def get_passage(
        chunk_id: SourceId,
        before: Annotated[int, Query(ge=0, le=MAX_NEIGHBOURS, description="Chunks before it.")] = 1,
        after: Annotated[int, Query(ge=0, le=MAX_NEIGHBOURS, description="Chunks after it.")] = 1,
    ) -> Response:
        answer = await _require_library(knowledge).passage(PassageQuery(chunk_id, before, after))
        return json_response(KnowledgePassageShown.of(answer))


def _require_library(knowledge: LibrarySearch | None) -> LibrarySearch:
    if knowledge is None:
        raise SetupError("there is no library here", hint="set TOOLSCRIPT_MONGO_URL to its address")
    return knowledge


def _query(
    parameters: KnowledgeParameters, request: KnowledgeRequest | None, default: SearchType
) -> KnowledgeQuery:
    if request is None and parameters.query is None:
        raise InvalidRequest("the request has no query", hint="send a body, or a query string with `query`")
    if request is not None and parameters.model_fields_set:
        raise InvalidRequest("the request has both a body and a query string", hint="send one of them")
    return parameters.as_query(default) if request is None else request.as_query(default)
