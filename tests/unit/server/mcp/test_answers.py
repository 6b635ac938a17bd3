"""Results of each tool: text for a model, the same facts as data, and errors for invalid arguments."""

import logging
import re
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import BaseModel

from tests.unit.server.mcp.builders import ACCEPT, ME, OLD, Plain, World, result_of, token
from tests.unit.tools.search.builders import FailingIndex
from toolscript.core.errors import CatalogUnavailable, IndexUnavailable, LibraryUnavailable
from toolscript.knowledge.alias_schemas import KnowledgeResponse, KnowledgeToolResponse
from toolscript.knowledge.model.query import KnowledgeQuery, PassageQuery, SourcesQuery
from toolscript.knowledge.schemas import LibraryChunk, LibrarySource, LibrarySourcePage

pytestmark = pytest.mark.requirement("KN-005")

NAME = re.compile(r"[a-z_]+")


def text_of(answer: dict[str, Any]) -> str:
    (block,) = answer["content"]
    assert block["type"] == "text"
    return str(block["text"])


def json_of(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json", exclude_unset=True)


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "metadata": {**answer["metadata"], "took_ms": 0}}


@pytest.mark.requirement("KN-001")
@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({"query": "sugar for bees"}, KnowledgeQuery("sugar for bees", 5)),
        ({"query": "spring", "limit": 1}, KnowledgeQuery("spring", 1)),
        ({"query": "bees", "type": "extraction"}, KnowledgeQuery("bees", 5, types=("extraction",))),
        ({"query": "bees", "type": ["warning"]}, KnowledgeQuery("bees", 5, types=("warning",))),
        ({"query": "spring", "topics": "steel"}, KnowledgeQuery("spring", 5, topics=("steel",))),
        ({"query": "sugar", "include_both": True}, KnowledgeQuery("sugar", 5, both=True)),
    ],
)
async def test_search_knowledge_answers_what_the_library_answers(
    world: World, arguments: dict[str, Any], query: KnowledgeQuery
) -> None:
    world.over_http = True
    async with world.client() as client:
        answer = await client.answer("search_knowledge", arguments)
        over_http = await client.http.post("/search_knowledge", json={"limit": 5, **arguments})
    expected = await world.shelf.search.search(query)
    assert expected.hits
    assert without_time(answer["structuredContent"]) == without_time(json_of(KnowledgeToolResponse.of(expected)))
    assert without_time(over_http.json()) == without_time(json_of(KnowledgeResponse.of(expected)))
    assert answer["isError"] is False


@pytest.mark.requirement("KN-002")
async def test_a_hit_shows_title_position_and_chunk_id(world: World) -> None:
    async with world.client() as client:
        answer = await client.answer("search_knowledge", {"query": "sugar in autumn", "limit": 1, "kind": "chunk"})
        (hit,) = answer["structuredContent"]["results"]
        chunk_id, score = hit["source"]["chunk_id"], hit["score"]
        assert text_of(answer) == (
            f"[1] Keeping bees: One > Part 1, page 2, score {score:.4f}, chunk_id {chunk_id}\nFeed sugar in autumn"
        )
        around = await client.answer("get_passage", {"chunk_id": chunk_id})
        source = await client.answer("get_source", {"source_id": hit["source"]["source_id"]})
    library = world.shelf.search
    assert around["structuredContent"] == json_of(
        LibraryChunk.of_answer(await library.passage(PassageQuery(chunk_id)))
    )
    assert [part for part in text_of(around).split("\n\n") if "Feed sugar" in part] == [
        f"[One > Part 1, page 2, chunk_id {chunk_id}]\nFeed sugar in autumn"
    ]
    assert source["structuredContent"] == json_of(
        LibrarySource.of(await library.source(hit["source"]["source_id"]))
    )
    assert re.match(r"Keeping bees by Ann \(book, \d chunks; bees\), source_id [0-9a-f]{24}", text_of(source))


async def test_an_extraction_shows_its_type(world: World) -> None:
    async with world.client() as client:
        answer = await client.answer("search_knowledge", {"query": "damp hives", "extraction_type": "warning"})
    assert re.match(r"\[1\] Keeping bees: One > Part 0, page 1, warning, score 0\.\d{4}, ", text_of(answer))


async def test_sources_are_listed_a_page_at_a_time(world: World) -> None:
    async with world.client() as client:
        first = await client.answer("list_sources", {"limit": 1})
        cursor = first["structuredContent"]["next_cursor"]
        second = await client.answer("list_sources", {"limit": 1, "cursor": cursor})
        none = await client.answer("list_sources", {"topics": ["nothing"]})
    assert first["structuredContent"] == json_of(
        LibrarySourcePage.of_answer(await world.shelf.search.sources(SourcesQuery(1)))
    )
    assert text_of(first).endswith(f"There are more: cursor {cursor}.")
    titles = {item["structuredContent"]["results"][0]["title"] for item in (first, second)}
    assert titles == {"Keeping bees", "On steel bridges"}
    assert text_of(none) == "There are none."


async def test_an_empty_result_has_a_hint(world: World) -> None:
    async with world.client() as client:
        answer = await client.answer("search_knowledge", {"query": "bees", "topics": ["cooking"]})
    assert text_of(answer).startswith("Nothing in the library fits.")
    assert answer["structuredContent"]["metadata"]["result_count"] == 0


async def test_a_part_that_failed_is_named_in_the_text_too(world: World) -> None:
    world.shelf.breaks("extractions", "search", IndexUnavailable("it is away"))
    async with world.client() as client:
        answer = await client.answer("search_knowledge", {"query": "bees"})
    degraded = answer["structuredContent"]["metadata"]["degraded"]
    assert degraded
    assert text_of(answer).endswith(f"Not all of the search worked: {', '.join(degraded)}.")


async def test_a_tool_that_fails_for_an_engine_does_not_tell_its_address(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise CatalogUnavailable("PostgreSQL: 10.1.2.3:5432 refused", hint="is TOOLSCRIPT_POSTGRES_URL right?")

    monkeypatch.setattr(world.scene.catalog, "items", refuse)
    async with world.client() as client:
        with caplog.at_level(logging.WARNING):
            answer = await client.answer("describe_tool", {"id": 1})
    assert (answer["isError"], text_of(answer)) == (True, "an engine does not answer. try again in a moment")
    assert "10.1.2.3" not in str(answer)
    assert "10.1.2.3" in str([vars(record) for record in caplog.records])


async def test_tools_are_found_described_and_narrowed_by_skill(world: World) -> None:
    async with world.client() as client:
        result = await client.answer("search_tools", {"query": "read the contents of a file", "threshold": 0})
        first = result["structuredContent"]["results"][0]
        with_schema = await client.answer(
            "search_tools", {"query": "read the contents of a file", "threshold": 0, "detail": "schema"}
        )
        output = await client.answer("describe_tool", {"ids": [first["id"], 999]})
        unknown = await client.answer("describe_tool", {"id": 999})
        prompts = await client.answer("search_tools", {"query": "a file", "kind": "prompt", "threshold": 0})
    assert f"{first['tool']} " in text_of(result)
    assert f"(id {first['id']}): " in text_of(result)
    assert "input_schema" not in first
    assert with_schema["structuredContent"]["results"][0]["tool"] == first["tool"]
    (tool,) = output["structuredContent"]["results"]
    assert (tool["tool"], output["structuredContent"]["unknown"]) == (first["tool"], [999])
    assert (unknown["isError"], "999" in text_of(unknown)) == (True, True)
    assert {item["kind"] for item in prompts["structuredContent"]["results"]} <= {"prompt"}


async def test_skills_are_listed_a_page_at_a_time(world: World) -> None:
    async with world.client() as client:
        first = await client.answer("list_skills", {"limit": 1})
        second = await client.answer("list_skills", {"cursor": first["structuredContent"]["next_cursor"]})
    assert [skill["id"] for skill in first["structuredContent"]["results"]] == ["mail"]
    assert [skill["id"] for skill in second["structuredContent"]["results"]] == ["reading_files"]
    assert second["structuredContent"]["next_cursor"] is None
    assert text_of(second) == "reading_files (0 tools): Reading_Files. What is about reading_files"


@pytest.mark.requirement("AP-001")
async def test_earlier_names_of_arguments_are_accepted(world: World) -> None:
    async with world.client() as client:
        pairs: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            ("search_knowledge", {"query": "bees", "type": "chunk"}, {"query": "bees", "kind": "chunk"}),
            (
                "search_knowledge",
                {"query": "damp hives", "type": ["chunk", "warning"]},
                {
                    "query": "damp hives",
                    "kind": ["chunk", "extraction"],
                    "extraction_type": "warning",
                },
            ),
            ("search_tools", {"query": "a file", "type": "prompt"}, {"query": "a file", "kind": "prompt"}),
            ("list_sources", {"type": "book"}, {"kind": "book"}),
        ]
        for name, earlier, now in pairs:
            old, new = [
                (await client.answer(name, arguments))["structuredContent"] for arguments in (earlier, now)
            ]
            assert old["results"] == new["results"], name
        for name in ("list_sources", "list_skills"):
            whole = (await client.answer(name, {}))["structuredContent"]["results"]
            later = (await client.answer(name, {"after": whole[0]["id"]}))["structuredContent"]["results"]
            assert later == whole[1:]


async def test_documents_are_narrowed_by_filters_and_answered_as_over_http(world: World) -> None:
    only = {"must": [{"field": "year", "op": "lt", "value": 2025}]}
    async with world.client(**token()) as client:
        answer = await client.answer("search_documents", {"query": "bees and whales", "filters": only})
        refused = await client.answer("search_documents", {"query": "x", "filters": {"must": [{"op": "eq"}]}})
    data = answer["structuredContent"]
    assert [result["id"] for result in data["results"]] == ["b.md"]
    assert text_of(answer) == f'[1] b.md, score {data["results"][0]["score"]:.4f} {{"year":2020}}\nBees fly.'
    assert text_of(refused) == "filters.must.0.field cannot be understood: Field required"


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search_knowledge", {}, "query must be a string"),
    ("search_knowledge", {"query": " "}, "the query is blank. say in a few words what you want to know"),
    ("search_knowledge", {"query": "x", "limit": 101}, "limit must be a whole number from 1 to 100"),
    ("search_knowledge", {"query": "x", "limit": True}, "limit must be a whole number from 1 to 100"),
    ("search_knowledge", {"query": "x", "type": [1]}, "type must be a string or a list of strings"),
    ("search_knowledge", {"query": "x", "include_both": "yes"}, "include_both must be true or false"),
    (
        "search_knowledge",
        {"query": "x", "source_id": "a"},
        "source_id must be 24 hex digits, as answers give them",
    ),
    ("search_knowledge", {"query": "x", "tenant": "acme"}, "search_knowledge has no argument 'tenant'. it takes "),
    ("get_passage", {"chunk_id": "a"}, "chunk_id must be 24 hex digits, as answers give them"),
    ("get_passage", {"chunk_id": "0" * 24, "before": -1}, "before must be a whole number from 0 to 20"),
    ("list_sources", {"limit": 0}, "limit must be a whole number from 1 to 200"),
    ("list_sources", {"cursor": "?"}, "this is no cursor of this list"),
    ("list_skills", {"cursor": "?"}, "this is no cursor of this list"),
    ("search_tools", {"query": "x", "kind": "toy"}, "kind must be one of tool, prompt, resource"),
    (
        "search_tools",
        {"query": "x", "kind": "tool", "type": "tool"},
        "type is an earlier name of kind: give one of them",
    ),
    (
        "search_knowledge",
        {"query": "x", "kind": "chunk", "extraction_type": "warning"},
        "extraction_type is about extractions, which `kind` leaves out",
    ),
    (
        "search_knowledge",
        {"query": "x", "kind": "chunk", "type": "chunk"},
        "type is an earlier name of kind and extraction_type: give these",
    ),
    ("search_tools", {"query": "x", "threshold": "high"}, "threshold must be a number from 0 to 1"),
    ("describe_tool", {}, "id must be given, or `ids`, and not both"),
    ("describe_tool", {"ids": list(range(1, 12))}, "ids must be a list of 1 to 10 ids"),
    ("describe_tool", {"id": "1"}, "id must be a whole number from 1 to "),
    ("search_documents", {"query": "x", "limit": 50}, "limit must be a whole number from 1 to 20"),
    (
        "search_documents",
        {"query": "x", "search_type": "psychic"},
        "search_type must be one of semantic, keyword, hybrid",
    ),
]


async def test_invalid_arguments_return_an_error_with_a_hint(world: World, subtests: pytest.Subtests) -> None:
    for name, arguments, said in WRONG:
        with subtests.test(name=name, arguments=arguments, said=said):
            async with world.client(**token()) as client:
                answer = await client.answer(name, arguments)
                old = await _called_in_2025_06_18(client, name, arguments)
            assert answer["isError"] is True
            assert text_of(answer).startswith(said)
            assert (old["error"]["code"], old["error"]["message"].startswith(said)) == (-32602, True)


async def _called_in_2025_06_18(client: Plain, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {**ACCEPT, "MCP-Protocol-Version": OLD, **client.headers}
    return result_of(await client.http.post("/mcp", json=request, headers=headers))


@pytest.mark.states("S4-207")
async def test_not_found_and_unavailable_are_error_results(world: World) -> None:
    async with world.client() as client:
        missing = await client.answer("get_source", {"source_id": "0" * 24})
    world.shelf.breaks("library", "sources", LibraryUnavailable("the library is away", hint="try again"))
    async with world.client() as client:
        away = await client.answer("get_source", {"source_id": "0" * 24})
    assert (missing["isError"], text_of(missing).startswith("there is no source 0000")) == (True, True)
    assert (away["isError"], text_of(away)) == (True, "the library does not answer. try again in a moment")


async def test_a_search_of_tools_that_could_not_search_is_an_error_result(world: World) -> None:
    world.scene.index = FailingIndex(IndexUnavailable("it is away"))
    async with world.client() as client:
        answer = await client.answer("search_tools", {"query": "read a file"})
    assert (answer["isError"], text_of(answer)) == (
        True,
        "nothing could be searched: the index does not answer. try again in a moment",
    )


async def test_every_tool_has_a_description_a_closed_schema_and_is_read_only(world: World) -> None:
    async with world.client(**token()) as client:
        listed = result_of(await client.post("tools/list"))
    assert (listed["ttlMs"], listed["cacheScope"]) == (60 * 60 * 1000, "private")
    tools = {tool["name"]: tool for tool in listed["tools"]}
    for name, tool in tools.items():
        assert tool["annotations"]["readOnlyHint"] is True, name
        assert tool["inputSchema"]["additionalProperties"] is False, name
        assert "Use it" in tool["description"], name
        assert {*NAME.findall(tool["description"])} & (tools.keys() - {name}) or name == "search_documents", name
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)


async def test_results_match_the_output_schema(world: World) -> None:
    async with world.client(**token()) as client:
        listed = result_of(await client.post("tools/list"))["tools"]
        hit = (await client.answer("search_knowledge", {"query": "bees"}))["structuredContent"]["results"][0]
        calls: dict[str, dict[str, Any]] = {
            "search_knowledge": {"query": "bees", "include_both": True},
            "get_passage": {"chunk_id": hit["source"]["chunk_id"]},
            "get_source": {"source_id": hit["source"]["source_id"]},
            "list_sources": {},
            "search_tools": {"query": "read a file", "threshold": 0, "detail": "schema"},
            "describe_tool": {"id": 1},
            "list_skills": {},
            "search_documents": {"query": "whales"},
        }
        for tool in listed:
            arguments = calls[tool["name"]]
            jsonschema.validate(arguments, tool["inputSchema"])
            data = (await client.answer(tool["name"], arguments))["structuredContent"]
            jsonschema.validate(data, _closed(tool["outputSchema"]))
    assert {tool["name"] for tool in listed} == calls.keys()


def _closed(schema: Any) -> Any:
    """Close the schema, so that undocumented fields fail."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return {**closed, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed


async def test_the_server_identifies_itself(world: World) -> None:
    request = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": ME}
    async with world.client() as client:
        output = result_of(await client.post("server/discover"))
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": request}
        welcome = result_of(await client.http.post("/mcp", json=body, headers=ACCEPT))
    assert output["instructions"] == welcome["instructions"]
    assert "search_knowledge" in output["instructions"]
    assert welcome["serverInfo"]["name"] == "toolscript"
