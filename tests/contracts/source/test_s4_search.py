"""S4 on errors and steps of a search: its routes, over in-memory parts that record calls."""

import asyncio
import inspect
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.documents.http.builders import Client, Json, client_of
from tests.unit.knowledge.http.conftest import app_of
from tests.unit.knowledge.search.builders import Shelf, open_shelf
from tests.unit.knowledge.search.conftest import filled
from toolscript.core.auth.model import Scope
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.errors import EmbedderUnavailable, IndexUnavailable, ToolscriptError
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.testing import MemoryIndexes

pytestmark = pytest.mark.slow

SEARCH = "/search_knowledge"
NOWHERE = "/sources/" + "0" * 24


@pytest.fixture
async def memory_shelf() -> Shelf:
    two = MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False)
    return await filled(await open_shelf(*two))


@dataclass
class Watched:
    """Wraps one method of a part, and records its calls."""

    real: Any
    method: str
    before: Callable[[], Awaitable[object]] | None = None
    asked: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return self._call if name == self.method else getattr(self.real, name)

    async def _call(self, asked: Any) -> Any:
        self.asked.append(asked)
        if self.before is not None:
            await self.before()
        return await getattr(self.real, self.method)(asked)


def watched(shelf: Shelf, before: Callable[[], Awaitable[object]] | None = None) -> Any:
    """Wrap every part that a search calls."""
    searching = [Watched(item, "search", before) for item in (shelf.chunks, shelf.extractions)]
    embedder, library = Watched(shelf.embedder, "embed_query"), Watched(shelf.library, "chunks")
    parts: list[Any] = [*searching, library, embedder]
    return Shelf(*parts)


async def ticks_during(asked: Awaitable[object]) -> int:
    """Return how often the event loop ran other tasks until the response."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await asked
    ticking.cancel()
    return ticks


async def refused(api: Client, status: int, method: str, path: str, body: object = None) -> Json:
    answer = (await api.ask(method, path, status, body)).json()
    assert list(answer) == ["error"]
    error: Json = answer["error"]
    assert error.keys() == {"code", "message", "details"}
    assert (type(error["message"]), type(error["details"])) == (str, dict)
    assert error["message"]
    assert error["code"].isupper()
    return error


@pytest.mark.states("S4-012", "S4-076", "S4-077", "S4-078", "S4-083", "S4-084", "S4-110", "S4-114", "S4-115")
@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({}, 422, "query"),
        ({"query": 5}, 422, "query"),
        ({"query": " "}, 400, "query"),
        ({"query": "a", "limit": 0}, 422, "limit"),
        ({"query": "a", "limit": 101}, 422, "limit"),
        ({"query": "a", "search_type": "nearest"}, 422, "search_type"),
    ],
)
async def test_a_request_that_cannot_be_understood_is_a_validation_error(
    memory_shelf: Shelf, body: Json, status: int, named: str
) -> None:
    shelf = watched(memory_shelf)
    async with client_of(app_of(shelf), "") as api:
        error = await refused(api, status, "POST", SEARCH, body)
    assert error["code"] == "VALIDATION_ERROR"
    assert named in error["message"]
    assert shelf.embedder.asked == []


@pytest.mark.states("S4-079", "S4-080")
async def test_not_found_and_rate_limited_have_their_own_codes(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf, a_minute=1), "") as api:
        assert (await refused(api, 404, "GET", NOWHERE))["code"] == "NOT_FOUND"
        assert (await refused(api, 429, "POST", SEARCH, {"query": "a"}))["code"] == "RATE_LIMITED"


@pytest.mark.states("S4-081", "S4-082")
async def test_server_errors_and_missing_rights_have_their_own_codes(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf, public=frozenset({Scope.TOOLS_READ})), "") as api:
        assert (await refused(api, 401, "POST", SEARCH, {"query": "a"}))["code"] == "UNAUTHORIZED"
    async with client_of(app_of(None), "") as api:
        assert (await refused(api, 503, "POST", SEARCH, {"query": "a"}))["code"] == "UNAVAILABLE"
    memory_shelf.breaks("chunks", "search", ToolscriptError("nobody thought of this"))
    async with client_of(app_of(memory_shelf), "") as api:
        assert (await refused(api, 500, "POST", SEARCH, {"query": "a"}))["code"] == "INTERNAL_ERROR"


@pytest.mark.states("S4-201")
async def test_a_failed_embedding_is_an_error_in_literal_mode_and_else_search_is_sparse(
    memory_shelf: Shelf,
) -> None:
    memory_shelf.breaks("embedder", "embed_query", EmbedderUnavailable("down"))
    async with client_of(app_of(memory_shelf), "") as api:
        error = await refused(api, 503, "POST", SEARCH, {"query": "sugar", "search_type": "semantic"})
        assert (error["code"], error["message"]) == ("UNAVAILABLE", "the embedding model does not answer")
        default = (await api.ask("POST", SEARCH, 200, {"query": "sugar"})).json()
    assert (default["metadata"]["degraded"], default["metadata"]["search_type"]) == (["embedding"], "keyword")
    assert "sugar" in default["results"][0]["content"].lower()


@pytest.mark.states("S4-038", "S4-047", "S4-093", "S4-094", "S4-163", "S4-189")
@pytest.mark.parametrize(("limit", "each"), [({}, 10), ({"limit": 3}, 3), ({"limit": 100}, 100)])
async def test_literal_mode_embeds_once_searches_both_with_the_limit_and_then_reads_the_library(
    memory_shelf: Shelf, limit: Json, each: int
) -> None:
    shelf = watched(memory_shelf)
    query = "  Sugar, for (the) BEES & co?  "
    async with client_of(app_of(shelf), "") as api:
        answer = (await api.ask("POST", SEARCH, 200, {"query": query, "search_type": "semantic", **limit})).json()
    assert shelf.embedder.asked == [query]
    for collection in (shelf.chunks, shelf.extractions):
        (ask,) = collection.asked
        assert (ask.limit, ask.terms, ask.vector is not None) == (each, None, True)
    assert len(shelf.library.asked) == 1
    assert answer["metadata"]["result_count"] == min(each, 7)


@pytest.mark.states("S4-103", "S4-208")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_a_query_is_embedded_once_as_it_is_and_no_more_than_the_limit_are_shown(
    memory_shelf: Shelf, search_type: str
) -> None:
    shelf = watched(memory_shelf)
    request = {"query": "  Sugar, for (the) BEES & co?  ", "search_type": search_type, "include_both": True}
    async with client_of(app_of(shelf), "") as api:
        answer = (await api.ask("POST", SEARCH, 200, {**request, "limit": 3})).json()
    assert shelf.embedder.asked == [request["query"]]
    assert len(answer["results"]) == 3


@pytest.mark.states("S4-097")
async def test_literal_mode_shows_a_chunk_and_its_extraction_unless_told_not_to(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf), "") as api:

        async def ids(**asked: object) -> set[str]:
            answer = await api.ask("POST", SEARCH, 200, {"query": "sugar in autumn", **asked})
            return {result["source"]["chunk_id"] + result["type"] for result in answer.json()["results"]}

        literal, default = await ids(search_type="semantic"), await ids()
        assert (len(literal), len(default)) == (7, 5)
        assert await ids(search_type="semantic", include_both=False) == default
        assert await ids(include_both=True) == literal


@pytest.mark.states("S4-200")
async def test_both_collections_are_searched_at_the_same_time(memory_shelf: Shelf) -> None:
    """Each search waits for the other to start: sequential searches would deadlock."""
    barrier = asyncio.Barrier(2)
    shelf = watched(memory_shelf, barrier.wait)
    async with client_of(app_of(shelf), "") as api, asyncio.timeout(5):
        for search_type in ("semantic", "hybrid"):
            answer = (await api.ask("POST", SEARCH, 200, {"query": "sugar", "search_type": search_type})).json()
            assert answer["metadata"]["degraded"] == []


@pytest.mark.states("S4-146", "S4-147")
async def test_every_endpoint_is_asynchronous(memory_shelf: Shelf) -> None:
    result = {}
    waiting = [*app_of(memory_shelf).routes]
    while waiting:
        route: Any = waiting.pop()
        waiting += getattr(getattr(route, "original_router", route), "routes", [])
        if hasattr(route, "endpoint"):
            result[route.path] = inspect.iscoroutinefunction(route.endpoint)
    assert {SEARCH, "/sources", "/sources/{source_id}", "/passages/{chunk_id}"} <= result.keys()
    assert [path for path, waits in result.items() if not waits] == []


@pytest.mark.states("S4-199", "S4-028", "S4-148")
async def test_other_requests_continue_while_texts_are_embedded(model_folder: str) -> None:
    embedder = LocalEmbedder(model_folder)
    texts = [f"the hive number {number} stands in a dry place " * 20 for number in range(16)]
    assert await ticks_during(embedder.embed_texts(texts)) > 5
    embedder.close()


@pytest.mark.states("S4-211")
async def test_other_requests_continue_while_qdrant_is_awaited() -> None:
    """This Qdrant accepts connections and never responds."""

    async def asked() -> None:
        async with open_qdrant(f"http://127.0.0.1:{port}", port, timeout_seconds=0.5) as silent:
            with pytest.raises(IndexUnavailable):
                await QdrantIndexes(silent, "chunks", Layout()).live()

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert await ticks_during(asked()) > 5
