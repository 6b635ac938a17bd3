"""The library under /api/v1/knowledge."""

import uuid
from typing import Any

import pytest

from tests.unit.documents.http.builders import Client, Json, client_of
from tests.unit.knowledge.http.conftest import app_of
from tests.unit.knowledge.search.builders import CARD, Shelf
from tests.unit.server.http.captured_logs import lines, logged
from toolscript.core.auth.model import Scope
from toolscript.core.errors import EmbedderUnavailable, LibraryUnavailable, ModelMismatch
from toolscript.core.retrieval.ports import Index
from toolscript.core.web.cursors import encode_cursor
from toolscript.knowledge.model.library import source_id
from toolscript.knowledge.search import KnowledgeSearch

pytestmark = [pytest.mark.requirement("KN-003"), pytest.mark.slow]

LIBRARY = "/api/v1/knowledge"
SEARCH = f"{LIBRARY}/search"
SOURCES = f"{LIBRARY}/sources"
BEES = source_id("Keeping bees")
ABSENT = "0" * 24


async def search(api: Client, expected: int = 200, **request: object) -> Json:
    return dict((await api.ask("POST", SEARCH, expected, request)).json())


async def get(api: Client, path: str, expected: int = 200) -> Json:
    return dict((await api.ask("GET", f"{LIBRARY}{path}", expected)).json())


async def error_of(api: Client, expected: int, **request: object) -> dict[str, Any]:
    return dict((await search(api, expected, **request))["error"])


async def test_an_answer_has_an_id_results_with_their_sources_and_metadata(api: Client) -> None:
    answer = await search(api, query="damp hives", limit=2)
    assert list(answer) == ["query_id", "results", "metadata"]
    assert str(uuid.UUID(answer["query_id"])) == answer["query_id"]
    first, metadata = answer["results"][0], answer["metadata"]
    chunk_id, score = first.pop("chunk_id"), first.pop("score")
    assert first.pop("id") != chunk_id
    assert 0 < score <= 1
    assert first == {
        "kind": "extraction",
        "extraction_type": "warning",
        "content": "Damp hives\nA wet hive dies",
        "topics": ["bees"],
        "position": {"chapter": "One", "section": "Part 0", "page": 1, "line": None, "start": 0, "end": 0},
        "source": {"id": BEES, "title": "Keeping bees", "authors": ["Ann"]},
    }
    assert metadata.pop("took_ms") > 0
    assert metadata.pop("sources_cited")[0] == "Keeping bees"
    assert metadata == {
        "query": "damp hives",
        "search_type": "hybrid",
        "limit": 2,
        "result_count": 2,
        "degraded": [],
        "index_version": CARD.fingerprint,
        "weights_version": None,
        "good_match": None,
    }


async def test_a_chunk_says_that_it_is_not_extracted(api: Client) -> None:
    (hit,) = (await search(api, query="spring", limit=1, kind="chunk"))["results"]
    assert (hit["kind"], hit["extraction_type"], hit["chunk_id"]) == ("chunk", None, hit["id"])


async def test_the_alias_finds_the_same_under_its_own_names(api: Client) -> None:
    new = await search(api, query="sugar hive", limit=4, topics=["bees"])
    old = (
        await api.ask("POST", "/search_knowledge", json={"query": "sugar hive", "limit": 4, "topics": ["bees"]})
    ).json()
    assert [(hit["id"], hit["score"], hit["kind"]) for hit in new["results"]] == [
        (hit["id"], hit["score"], hit["type"]) for hit in old["results"]
    ]


async def test_the_id_of_a_search_is_in_the_log_line_of_its_request(memory_shelf: Shelf) -> None:
    with logged("info") as output:
        async with client_of(app_of(memory_shelf), "") as api:
            answer = await search(api, query="spring")
    (request,) = [line for line in lines(output) if line["event"] == "request"]
    assert (request["path"], request["query_id"]) == (SEARCH, answer["query_id"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"kind": "chunk"}, {None}),
        ({"kind": "extraction"}, {"method", "warning"}),
        ({"kind": ["chunk", "extraction"], "include_both": True}, {None, "method", "warning"}),
        ({"extraction_type": "method"}, {"method"}),
        ({"kind": "extraction", "extraction_type": ["Method "]}, {"method"}),
        ({"kind": ["extraction", "chunk"], "extraction_type": ["method"], "include_both": True}, {None, "method"}),
    ],
)
async def test_a_search_can_be_limited_to_kinds_and_types(
    api: Client, asked: dict[str, Any], expected: set[str | None]
) -> None:
    answer = await search(api, query="sugar hive", **asked)
    assert {hit["extraction_type"] for hit in answer["results"]} == expected


@pytest.mark.parametrize(
    ("asked", "status", "field"),
    [
        ({"query": " "}, 400, None),
        ({}, 422, None),
        ({"query": "a", "limit": 101}, 422, None),
        ({"query": "a", "type": "chunk"}, 422, None),
        ({"query": "a", "kind": "decision"}, 422, None),
        ({"query": "a", "source_id": "x"}, 422, None),
        ({"query": "a", "topics": ["!!"]}, 422, "topics"),
        ({"query": "a", "kind": "chunk", "extraction_type": "method"}, 422, "extraction_type"),
        ({"query": "a", "extraction_type": [" Chunk"]}, 422, "extraction_type"),
        ({"query": "a", "extraction_type": ["x"] * 32}, 422, None),
    ],
)
async def test_an_invalid_search_is_refused(
    api: Client, asked: dict[str, Any], status: int, field: str | None
) -> None:
    error = await error_of(api, status, **asked)
    assert (error["code"], error["details"].get("field")) == ("VALIDATION_ERROR", field)


async def test_a_search_takes_a_body_only(api: Client) -> None:
    refused = (await api.ask("POST", f"{SEARCH}?query=spring", 422)).json()["error"]
    assert refused["code"] == "VALIDATION_ERROR"


async def test_sources_are_listed_page_by_page_and_the_last_page_says_so(api: Client) -> None:
    pages = [await get(api, "/sources?limit=1")]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(await get(api, f"/sources?limit=1&cursor={cursor}"))
    ids = [source["id"] for page in pages for source in page["results"]]
    assert [len(page["results"]) for page in pages] == [1, 1]
    assert ids == sorted(ids)
    assert [*pages[0]] == ["results", "next_cursor"]
    everything = await get(api, "/sources")
    assert ([source["id"] for source in everything["results"]], everything["next_cursor"]) == (ids, None)


async def test_a_source_removed_between_pages_hides_no_other(memory_shelf: Shelf) -> None:
    for number in range(4):
        await memory_shelf.add(f"Book {number}", ["text"])
    async with client_of(app_of(memory_shelf), "") as api:
        before = [source["id"] for source in (await get(api, "/sources"))["results"]]
        first = await get(api, "/sources?limit=3")
        await memory_shelf.library.remove_source(before[2])
        rest = await get(api, f"/sources?cursor={first['next_cursor']}")
        assert [source["id"] for source in rest["results"]] == before[3:]


async def test_sources_are_filtered_by_kind_and_topic(api: Client) -> None:
    assert [source["id"] for source in (await get(api, "/sources?topics=bees"))["results"]] == [BEES]
    assert len((await get(api, "/sources?kind=book&kind=pdf"))["results"]) == 2
    assert await get(api, "/sources?kind=pdf") == {"results": [], "next_cursor": None}


@pytest.mark.parametrize(
    "cursor", ["nonsense", "é", encode_cursor(3), encode_cursor("x"), encode_cursor("F" * 24)]
)
async def test_an_invalid_cursor_is_refused_by_its_name(api: Client, cursor: str) -> None:
    error = (await get(api, f"/sources?cursor={cursor}", 422))["error"]
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "cursor")
    assert "next_cursor" in error["details"]["hint"]


async def test_one_source_is_shown_without_its_path(api: Client) -> None:
    source = await get(api, f"/sources/{BEES}")
    assert source == (await get(api, "/sources?topics=bees"))["results"][0]
    assert source == {
        "id": BEES,
        "kind": "book",
        "title": "Keeping bees",
        "authors": ["Ann"],
        "topics": ["bees"],
        "state": "ready",
        "ingested_at": source["ingested_at"],
        "chunk_count": source["chunk_count"],
        "metadata": {},
    }


async def test_a_chunk_has_its_source_and_its_neighbours(api: Client) -> None:
    (hit,) = (await search(api, query="feed sugar in autumn", limit=1, kind="chunk"))["results"]
    chunk = await get(api, f"/chunks/{hit['id']}")
    assert (chunk["id"], chunk["number"], chunk["content"]) == (hit["id"], 1, hit["content"])
    assert (chunk["topics"], chunk["position"]["section"], chunk["token_count"]) == (["bees"], "Part 1", 5)
    assert chunk["source"]["id"] == BEES
    assert [neighbour["number"] for neighbour in chunk["before"]] == [0]
    assert [neighbour["number"] for neighbour in chunk["after"]] == [2]
    alone = await get(api, f"/chunks/{hit['id']}?before=0&after=0")
    assert (alone["before"], alone["after"]) == ([], [])
    most = await get(api, f"/chunks/{hit['id']}?before=20&after=20")
    assert (len(most["before"]), len(most["after"])) == (1, 1)
    await get(api, f"/chunks/{hit['id']}?before=21", 422)


@pytest.mark.parametrize(("path", "route"), [("sources", f"GET {SOURCES}"), ("chunks", f"POST {SEARCH}")])
async def test_what_is_absent_is_404_and_the_hint_names_a_route(api: Client, path: str, route: str) -> None:
    error = (await get(api, f"/{path}/{ABSENT}", 404))["error"]
    assert (error["code"], route in error["details"]["hint"]) == ("NOT_FOUND", True)
    assert (await get(api, f"/{path}/nonsense", 422))["error"]["code"] == "VALIDATION_ERROR"


async def test_without_a_library_every_route_refers_to_the_operator() -> None:
    async with client_of(app_of(None), "") as api:
        for method, path in (("POST", SEARCH), ("GET", SOURCES), ("GET", f"{LIBRARY}/chunks/{ABSENT}")):
            body = {"query": "a"} if method == "POST" else None
            error = (await api.ask(method, path, 503, body)).json()["error"]
            assert error["code"] == "UNAVAILABLE"
            assert error["details"]["hint"].startswith("ask the operator: set TOOLSCRIPT_MONGO_URL")


async def test_a_failing_part_is_named_or_refused_without_its_address(memory_shelf: Shelf) -> None:
    memory_shelf.breaks("embedder", "embed_query", EmbedderUnavailable("down"))
    async with client_of(app_of(memory_shelf), "") as api:
        metadata = (await search(api, query="spring"))["metadata"]
        assert (metadata["degraded"], metadata["search_type"]) == (["embedding"], "keyword")
    memory_shelf.breaks("library", "chunks", LibraryUnavailable("MongoDB: 10.1.2.3:27017 refused"))
    async with client_of(app_of(memory_shelf), "") as api:
        refused = await api.ask("POST", SEARCH, 503, {"query": "spring"})
        assert "10.1.2.3" not in refused.text


async def test_an_index_of_another_model_is_for_the_operator(memory_shelf: Shelf) -> None:
    async def open_indexes() -> tuple[Index, Index]:
        raise ModelMismatch("built by another model", hint="run `toolscript ingest --reindex`")

    memory_shelf.search = KnowledgeSearch(memory_shelf.embedder, open_indexes, memory_shelf.library)
    async with client_of(app_of(memory_shelf), "") as api:
        error = await error_of(api, 503, query="spring")
        assert error["details"]["hint"] == "ask the operator: run `toolscript ingest --reindex`"


@pytest.mark.requirement("KN-002")
async def test_access_is_that_of_the_aliases(memory_shelf: Shelf) -> None:
    requests = (("POST", SEARCH, {"query": "a"}), ("GET", SOURCES, None), ("GET", f"{SOURCES}/{BEES}", None))
    async with client_of(app_of(memory_shelf, public=frozenset({Scope.TOOLS_READ})), "") as api:
        for method, path, body in requests:
            await api.ask(method, path, 401, body)
            await api.ask(method, path, 401, body, authorization="Bearer unknown")
            refused = await api.ask(method, path, 403, body, authorization="Bearer narrow")
            assert "knowledge:read" in refused.text
            await api.ask(method, path, 200, body, authorization="Bearer reader")
    async with client_of(app_of(memory_shelf, a_minute=2), "") as api:
        await api.ask("POST", "/search_knowledge", 200, {"query": "spring"})
        await api.ask("POST", SEARCH, 200, {"query": "spring"})
        assert (await api.ask("GET", SOURCES, 429)).json()["error"]["code"] == "RATE_LIMITED"


@pytest.mark.requirement("KN-004")
async def test_no_route_of_the_library_writes_and_the_code_says_so(api: Client) -> None:
    for path in (SEARCH, SOURCES, f"{SOURCES}/{BEES}", f"{LIBRARY}/chunks/{ABSENT}"):
        for method in ("PUT", "PATCH", "DELETE"):
            refused = await api.ask(method, path, 405)
            assert refused.json()["error"]["code"] == "METHOD_NOT_ALLOWED"


async def test_every_operation_and_field_is_described_and_bodies_have_examples(api: Client) -> None:
    document = (await api.ask("GET", "/openapi.json")).json()
    operations = [
        operation
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if path.startswith(LIBRARY)
    ]
    names = ["search_library", "list_library_sources", "get_library_source", "get_chunk"]
    assert [operation["operationId"] for operation in operations] == names
    assert all(operation["summary"] and operation["tags"] == ["knowledge"] for operation in operations)
    assert all(field["description"] for operation in operations for field in operation.get("parameters", ()))
    schemas = document["components"]["schemas"]
    assert schemas["LibrarySearchRequest"]["examples"]
    ours = [name for name in schemas if name.startswith(("Library", "Chunk", "Knowledge", "Source"))]
    undescribed = [
        f"{name}.{field}"
        for name in ours
        for field, schema in schemas[name].get("properties", {}).items()
        if "description" not in schema
    ]
    assert undescribed == []


async def test_an_alias_is_described_as_one(api: Client) -> None:
    paths = (await api.ask("GET", "/openapi.json")).json()["paths"]
    for path, method, name in (
        ("/search_knowledge", "post", "search_knowledge"),
        ("/sources", "get", "list_sources_alias"),
        ("/sources/{source_id}", "get", "get_source_alias"),
        ("/passages/{chunk_id}", "get", "get_passage_alias"),
    ):
        operation = paths[path][method]
        assert (operation["operationId"], operation["deprecated"]) == (name, True)
        assert operation["description"].startswith(f"Alias of `{method.upper()} {LIBRARY}/")
