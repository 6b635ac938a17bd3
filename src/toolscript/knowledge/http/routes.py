"""Search of the library, and the way from a hit to its source and its neighbours. All routes are read-only."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.routing import APIRoute

from toolscript.core.auth.model import Scope
from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.retrieval.query import SearchType
from toolscript.core.web.auth import Identify, require_identity
from toolscript.core.web.cursors import decode_key
from toolscript.core.web.errors import documented
from toolscript.core.web.fields import json_response
from toolscript.core.web.paging import Cursor
from toolscript.core.web.request_context import API_PREFIX, new_query_id
from toolscript.core.web.routers import api_router
from toolscript.knowledge.alias_schemas import (
    KnowledgeParameters,
    KnowledgePassageShown,
    KnowledgeRequest,
    KnowledgeResponse,
    SourceShown,
    SourcesShown,
)
from toolscript.knowledge.model.library import ID_PATTERN, is_id
from toolscript.knowledge.model.query import (
    MAX_NEIGHBOURS,
    MAX_SOURCES,
    KnowledgeQuery,
    PassageQuery,
    SourcesQuery,
)
from toolscript.knowledge.ports import LibrarySearch
from toolscript.knowledge.schemas import (
    LibraryChunk,
    LibrarySearchAnswer,
    LibrarySearchRequest,
    LibrarySource,
    LibrarySourcePage,
    Values,
)

T = TypeVar("T")

PREFIX = f"{API_PREFIX}/knowledge"
ANSWERS: dict[int | str, dict[str, Any]] = documented(400, 401, 403, 422, 429, 500, 503)
LISTED: dict[int | str, dict[str, Any]] = documented(401, 403, 422, 429, 500, 503)
ONE: dict[int | str, dict[str, Any]] = documented(401, 403, 404, 422, 429, 500, 503)

SourceId = Annotated[str, Path(description="Id of the source, as results name it.", pattern=ID_PATTERN)]
ChunkId = Annotated[str, Path(description="Id of the chunk, as results name it.", pattern=ID_PATTERN)]
Before = Annotated[int, Query(ge=0, le=MAX_NEIGHBOURS, description="Number of chunks before it.")]
After = Annotated[int, Query(ge=0, le=MAX_NEIGHBOURS, description="Number of chunks after it.")]
SourceCount = Annotated[int, Query(ge=1, le=MAX_SOURCES, description="Maximum number of sources per page.")]


@dataclass(frozen=True)
class KnowledgeRoutes:
    """`search` None: there is no library. `search_type` is the default for requests without one."""

    search: LibrarySearch | None
    identity: Identify
    search_type: SearchType = SearchType.HYBRID


def knowledge_routes(knowledge: KnowledgeRoutes | None) -> APIRouter:
    """Return the routes. The source document fixes the operation id of one alias, `search_knowledge`."""
    checked = require_identity(knowledge.identity, Scope.KNOWLEDGE_READ) if knowledge else APIRoute
    router = api_router(tag="knowledge", route_class=checked)
    search = knowledge.search if knowledge else None
    default = knowledge.search_type if knowledge else SearchType.HYBRID
    _add_resources(router, search, default)
    _add_search_alias(router, search, default)
    _add_aliases(router, search)
    return router


def _add_resources(router: APIRouter, knowledge: LibrarySearch | None, default: SearchType) -> None:
    @router.post(
        f"{PREFIX}/search", response_model=LibrarySearchAnswer, responses=ANSWERS, summary="Search the library"
    )
    async def search_library(body: LibrarySearchRequest, request: Request) -> Response:
        """Search chunks and extractions, dense and sparse (BM25), and return each hit with its source."""
        query, query_id = body.as_query(default), new_query_id(request)
        answer = await _ask(knowledge, lambda library: library.search(query))
        return json_response(LibrarySearchAnswer.of(query_id, query, answer))

    @router.get(
        f"{PREFIX}/sources", response_model=LibrarySourcePage, responses=LISTED, summary="List the sources"
    )
    async def list_library_sources(
        kind: Annotated[
            Values, Query(default_factory=list, description="Only of any of these kinds, such as `pdf`.")
        ],
        topics: Annotated[Values, Query(default_factory=list, description="Only with any of these topics.")],
        cursor: Cursor = "",
        limit: SourceCount = 50,
    ) -> Response:
        """List the sources of the library in order of their ids."""
        query = SourcesQuery(limit, decode_key(cursor, is_id), tuple(kind), tuple(topics))
        page = await _ask(knowledge, lambda library: library.sources(query))
        return json_response(LibrarySourcePage.of_answer(page))

    @router.get(
        f"{PREFIX}/sources/{{source_id}}", response_model=LibrarySource, responses=ONE, summary="One source"
    )
    async def get_library_source(source_id: SourceId) -> Response:
        """Returns a source with its topics, its metadata and the number of its chunks."""
        hint = f"`GET {PREFIX}/sources` lists the sources"
        return json_response(
            LibrarySource.of(await _ask(knowledge, lambda library: library.source(source_id), hint))
        )

    @router.get(f"{PREFIX}/chunks/{{chunk_id}}", response_model=LibraryChunk, responses=ONE, summary="One chunk")
    async def get_chunk(chunk_id: ChunkId, before: Before = 1, after: After = 1) -> Response:
        """Return a chunk with its source, and with its neighbours in reading order."""
        query, hint = PassageQuery(chunk_id, before, after), f"`POST {PREFIX}/search` finds chunks"
        answer = await _ask(knowledge, lambda library: library.passage(query), hint)
        return json_response(LibraryChunk.of_answer(answer))


def _add_search_alias(router: APIRouter, knowledge: LibrarySearch | None, default: SearchType) -> None:
    @router.post(
        "/search_knowledge",
        response_model=KnowledgeResponse,
        responses=ANSWERS,
        operation_id="search_knowledge",
        deprecated=True,
        summary="Search the library (alias)",
    )
    async def search_knowledge(
        parameters: Annotated[KnowledgeParameters, Query()], request: KnowledgeRequest | None = None
    ) -> Response:
        """Alias of `POST /api/v1/knowledge/search` with its own field names.

        Send the request as a JSON body, or without a body the same names in the query string.
        """
        answer = await _require_library(knowledge).search(_query(parameters, request, default))
        return json_response(KnowledgeResponse.of(answer))


def _add_aliases(router: APIRouter, knowledge: LibrarySearch | None) -> None:
    @router.get(
        "/sources",
        response_model=SourcesShown,
        responses=ANSWERS,
        operation_id="list_sources_alias",
        deprecated=True,
        summary="List the sources of the library (alias)",
    )
    async def list_sources(
        type: Annotated[list[str], Query(default_factory=list, description="Only of any of these types.")],  # noqa: A002
        topics: Annotated[list[str], Query(default_factory=list, description="Only with any of these topics.")],
        limit: SourceCount = 20,
        after: Annotated[str, Query(description="`next_after` of the page before.", max_length=24)] = "",
    ) -> Response:
        """Alias of `GET /api/v1/knowledge/sources` with its own field names."""
        query = SourcesQuery(limit, after, tuple(type), tuple(topics))
        return json_response(SourcesShown.of(await _require_library(knowledge).sources(query)))

    @router.get(
        "/sources/{source_id}",
        response_model=SourceShown,
        responses=ONE,
        operation_id="get_source_alias",
        deprecated=True,
        summary="One source (alias)",
    )
    async def get_source(source_id: SourceId) -> Response:
        """Alias of `GET /api/v1/knowledge/sources/{source_id}` with its own field names."""
        return json_response(SourceShown.of(await _require_library(knowledge).source(source_id)))

    @router.get(
        "/passages/{chunk_id}",
        response_model=KnowledgePassageShown,
        responses=ONE,
        operation_id="get_passage_alias",
        deprecated=True,
        summary="A chunk with its neighbours (alias)",
    )
    async def get_passage(chunk_id: ChunkId, before: Before = 1, after: After = 1) -> Response:
        """Alias of `GET /api/v1/knowledge/chunks/{chunk_id}` with its own field names."""
        answer = await _require_library(knowledge).passage(PassageQuery(chunk_id, before, after))
        return json_response(KnowledgePassageShown.of(answer))


async def _ask(
    knowledge: LibrarySearch | None, ask: Callable[[LibrarySearch], Awaitable[T]], hint_if_absent: str = ""
) -> T:
    """Ask the library; errors get hints for a client of the API, who can name routes and ask the operator."""
    try:
        return await ask(_require_library(knowledge))
    except NotFound as error:
        raise NotFound(error.message, hint=hint_if_absent, details=error.details) from error
    except SetupError as error:
        raise type(error)(error.message, hint=f"ask the operator: {error.hint}", details=error.details) from error


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
