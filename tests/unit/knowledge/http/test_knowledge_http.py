"""POST /search_knowledge, and the routes that lead on from its results."""

import pytest

from tests.unit.documents.http.builders import Client, Json, client_of
from tests.unit.knowledge.http.conftest import app_of
from tests.unit.knowledge.search.builders import Shelf
from toolscript.core.auth.model import Scope
from toolscript.core.errors import LibraryUnavailable
from toolscript.knowledge.model.library import source_id

pytestmark = [pytest.mark.requirement("KN-003"), pytest.mark.slow]
BEES = source_id("Keeping bees")


async def search(api: Client, expected: int = 200, **request: object) -> Json:
    return dict((await api.ask("POST", "/search_knowledge", expected, request)).json())


@pytest.mark.requirement("KN-001")
async def test_an_answer_has_results_with_their_sources_and_metadata(api: Client) -> None:
    answer = await search(api, query="damp hives", limit=2)
    first = answer["results"][0]
    assert list(answer) == ["results", "metadata"]
    assert (first["type"], first["extraction_type"], first["content"]) == (
        "extraction",
        "warning",
        "Damp hives\nA wet hive dies",
    )
    chunk = first["source"].pop("chunk_id")
    assert first["source"] == {
        "source_id": BEES,
        "title": "Keeping bees",
        "authors": ["Ann"],
        "position": {"chapter": "One", "section": "Part 0", "page": 1, "line": None, "start": 0, "end": 0},
    }
    metadata = answer["metadata"]
    assert (metadata["query"], metadata["sources_cited"][0], metadata["result_count"]) == (
        "damp hives",
        "Keeping bees",
        2,
    )
    assert (metadata["search_type"], metadata["degraded"]) == ("hybrid", [])
    assert metadata["took_ms"] > 0
    around = (await api.ask("GET", f"/passages/{chunk}?after=2&before=0")).json()
    assert [chunk["number"] for chunk in around["chunks"]] == [0, 1, 2]
    assert around["source"]["source_id"] == BEES


async def test_the_query_string_and_the_body_give_the_same_response(api: Client) -> None:
    body = await search(api, query="spring", limit=3, type=["chunk"], topics="steel", source_id=[])
    path = "/search_knowledge?query=spring&limit=3&type=chunk&topics=steel"
    string = (await api.ask("POST", path)).json()
    for answer in (body, string):
        answer["metadata"].pop("took_ms")
    assert string == body
    assert len(body["results"]) == 2


async def test_a_list_in_a_query_string_is_a_repeated_name(api: Client) -> None:
    path = "/search_knowledge?query=sugar+hive&type=method&type=warning"
    answer = (await api.ask("POST", path)).json()
    assert {result["extraction_type"] for result in answer["results"]} == {"method", "warning"}


@pytest.mark.states("S4-110")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/search_knowledge", None, 422),
        ("/search_knowledge", {"query": " "}, 400),
        ("/search_knowledge?query=%20", None, 400),
        ("/search_knowledge?query=a", {"query": "a"}, 422),
        ("/search_knowledge", {"query": "a", "limit": 101}, 422),
        ("/search_knowledge?query=a&limit=0", None, 422),
        ("/search_knowledge?query=a&limit=x", None, 422),
        ("/search_knowledge?query=a&unheard=1", None, 422),
        ("/search_knowledge", {"query": "a", "source_id": "x"}, 422),
        ("/search_knowledge", {"query": "a", "search_type": "magic"}, 422),
    ],
)
async def test_an_invalid_request_is_refused_in_the_error_schema(
    api: Client, path: str, body: Json | None, status: int
) -> None:
    error = (await api.ask("POST", path, status, body)).json()["error"]
    assert (error["code"], bool(error["message"])) == ("VALIDATION_ERROR", True)


async def test_sources_are_listed_and_shown_without_their_paths(api: Client) -> None:
    listed = (await api.ask("GET", "/sources?limit=1")).json()
    rest = (await api.ask("GET", f"/sources?after={listed['next_after']}")).json()
    ids = [source["source_id"] for source in (*listed["sources"], *rest["sources"])]
    assert len(ids) == 2
    assert rest["next_after"] == ""
    source = (await api.ask("GET", f"/sources/{BEES}")).json()
    assert (source["title"], source["status"]) == ("Keeping bees", "ready")
    assert "path" not in source
    assert [source["title"] for source in (await api.ask("GET", "/sources?topics=bees")).json()["sources"]] == [
        "Keeping bees"
    ]
    for path in ("/sources/" + "0" * 24, "/passages/" + "0" * 24):
        assert (await api.ask("GET", path, 404)).json()["error"]["code"] == "NOT_FOUND"
    assert (await api.ask("GET", "/sources/nonsense", 422)).json()["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("KN-002")
async def test_anonymous_clients_may_search_within_a_rate_limit_per_address(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf, a_minute=2), "") as api:
        for left in (1, 0):
            answer = await api.ask("POST", "/search_knowledge", json={"query": "spring"})
            assert answer.headers["RateLimit-Remaining"] == str(left)
        refused = await api.ask("GET", "/sources", 429)
        assert refused.json()["error"]["code"] == "RATE_LIMITED"
        assert refused.headers["Retry-After"] == "30"


async def test_without_anonymous_access_a_token_with_the_scope_is_required(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf, public=frozenset({Scope.TOOLS_READ})), "") as api:
        await api.ask("GET", "/sources", 401)
        await api.ask("GET", "/sources", 401, authorization="Bearer unknown")
        refused = await api.ask("GET", "/sources", 403, authorization="Bearer narrow")
        assert "knowledge:read" in refused.text
        await api.ask("GET", "/sources", 200, authorization="Bearer reader")


async def test_an_invalid_token_is_refused_although_none_is_required(api: Client) -> None:
    await api.ask("GET", "/sources", 401, authorization="Bearer unknown")


async def test_without_a_library_every_route_reports_the_missing_setting() -> None:
    async with client_of(app_of(None), "") as api:
        for method, path in (("POST", "/search_knowledge?query=a"), ("GET", "/sources")):
            error = (await api.ask(method, path, 503)).json()["error"]
            assert "TOOLSCRIPT_MONGO_URL" in error["details"]["hint"]


async def test_a_library_that_is_down_gives_an_error(memory_shelf: Shelf) -> None:
    memory_shelf.breaks("library", "chunks", LibraryUnavailable("down"))
    async with client_of(app_of(memory_shelf), "") as api:
        assert (await search(api, 503, query="spring"))["error"]["code"] == "UNAVAILABLE"


@pytest.mark.requirement("KN-004")
async def test_no_route_of_the_library_writes(api: Client) -> None:
    for path in ("/sources", f"/sources/{BEES}", "/passages/" + "0" * 24, "/search_knowledge"):
        for method in ("PUT", "PATCH", "DELETE"):
            await api.ask(method, path, 405)


async def test_topics_and_types_are_normalised(api: Client) -> None:
    answer = await search(api, query="sugar hive", type=["Method"], topics=[" Food "])
    assert [result["extraction_type"] for result in answer["results"]] == ["method"]
    assert (await search(api, 422, query="sugar", topics=["!!"]))["error"]["details"]["field"] == "topics"


async def test_an_error_does_not_reveal_the_address_of_the_library(memory_shelf: Shelf) -> None:
    memory_shelf.breaks("library", "chunks", LibraryUnavailable("MongoDB: 10.1.2.3:27017 refused"))
    async with client_of(app_of(memory_shelf), "") as api:
        refused = await api.ask("POST", "/search_knowledge", 503, {"query": "spring"})
        assert "10.1.2.3" not in refused.text


async def test_a_local_service_refuses_other_host_names(memory_shelf: Shelf) -> None:
    async with client_of(app_of(memory_shelf, hosts=("search.example",)), "") as api:
        for host in ("127.0.0.1:8080", "localhost", "search.example", "search.example:443"):
            await api.ask("GET", "/sources", 200, host=host)
        for host in ("evil.example", "search.example.evil", "127.0.0.1.evil:8080"):
            assert "TOOLSCRIPT_PUBLIC_URL" in (await api.ask("GET", "/sources", 403, host=host)).text


async def test_a_private_catalog_requires_a_token_with_the_scope(
    memory_shelf: Shelf,
) -> None:
    app = app_of(memory_shelf, public=frozenset({Scope.KNOWLEDGE_READ}))
    async with client_of(app, "") as api:
        for path in ("/api/v1/search/tools?query=a", "/api/v1/skills"):
            await api.ask("GET", path, 401)
            await api.ask("GET", path, 403, authorization="Bearer narrow")
