"""Definitions of the three tools, and results of search_tools and describe_tool."""

import json
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from tests.unit.gateway.mcp.clients import MODES, call, connected, text_of
from tests.unit.gateway.mcp.gateway_double import ITEMS, GatewayDouble
from toolscript.core.errors import NotReady
from toolscript.core.mcp.answers import MAX_DESCRIPTION, one_line
from toolscript.gateway.mcp.shown import Unknown, no_such_tool
from toolscript.gateway.mcp.tools import LISTED_MS
from toolscript.gateway.model import LocalAnswer, LocalQuery, LocalStep

ISSUE_TYPES = """\
/** Create an issue in a repository. */
github__create_issue(params?: { title?: string }): { number?: number }"""


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_client_sees_the_tools_and_how_to_use_them(mode: str, protocol: str) -> None:
    async with connected(GatewayDouble(), mode) as client:
        assert client.protocol_version == protocol
        tools = (await client.list_tools()).tools
        assert client.instructions is not None
        assert "search_tools" in client.instructions
    assert [tool.name for tool in tools] == [
        "search_tools",
        "describe_tool",
        "call_tool",
        "read_result",
        "get_prompt",
        "read_resource",
    ]
    assert all(tool.title and tool.description and tool.annotations for tool in tools)
    hints = [
        (tool.annotations.read_only_hint, tool.annotations.open_world_hint) for tool in tools if tool.annotations
    ]
    assert hints == [(True, False), (True, False), (False, True), (True, False), (True, True), (True, True)]
    assert [tool.output_schema is not None for tool in tools] == [True, True, False, False, False, False]


async def test_the_tool_list_does_not_depend_on_the_catalog() -> None:
    seen = []
    for items in (ITEMS, ITEMS[:1], ()):
        async with connected(GatewayDouble(items)) as client:
            listed = await client.list_tools()
            assert (listed.ttl_ms, listed.cache_scope) == (LISTED_MS, "private")
            seen.append(listed.model_dump_json())
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *(("search_tools", {"query": "read file", "detail": detail}) for detail in ("compact", "types", "schema")),
        ("search_tools", {"query": "oven bread file", "detail": "schema"}),
        *(("describe_tool", {"tool": "files__read_file", "format": shape}) for shape in ("schema", "types")),
        ("describe_tool", {"tools": ["files__read_file", "files__read_fil"]}),
    ],
)
async def test_every_result_matches_the_output_schema(tool: str, arguments: dict[str, object]) -> None:
    async with connected(GatewayDouble()) as client:
        schemas = {tool_.name: tool_.output_schema for tool_ in (await client.list_tools()).tools}
    answer = await call(GatewayDouble(), tool, arguments)
    jsonschema.validate(answer.structured_content, closed(schemas[tool]))


def closed(schema: Any) -> Any:
    """Close every object of a schema, so that undeclared fields fail."""
    if isinstance(schema, list):
        return [closed(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {**inner, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("mode", MODES)
async def test_a_search_answers_in_one_line_for_each_tool(mode: str) -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "read file"}, mode)
    assert text_of(result).splitlines() == [
        "files__read_file(path?) 1.00: Read the contents of a file. (has read, file)",
        "files__write_file(path?, text?) 0.50: Write text to a file. (has file)",
        "database__query_rows(sql?) 0.50: " + one_line(ITEMS[3].description) + " (has read)",
    ]
    assert result.structured_content is not None
    assert result.structured_content["total"] == 3
    assert result.structured_content["semantic"] is True
    assert result.structured_content["hint"] == ""
    assert result.structured_content["good_match"] is True
    assert "unmatched_words" not in result.structured_content
    assert result.structured_content["results"][0] == {
        "tool": "files__read_file",
        "signature": "read_file(path?)",
        "confidence": 1.0,
        "description": "Read the contents of a file.",
        "reason": "has read, file",
    }


async def test_a_long_description_is_cut_at_a_word() -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "rows database"})
    assert result.structured_content is not None
    description = result.structured_content["results"][0]["description"]
    assert description.endswith(" …")
    assert len(description) <= MAX_DESCRIPTION + 2
    assert one_line(ITEMS[3].description) == description
    assert ITEMS[3].description.startswith(description.removesuffix(" …"))


async def test_limit_and_threshold_reach_the_gateway_and_the_rest_is_counted() -> None:
    gateway = GatewayDouble()
    result = await call(gateway, "search_tools", {"query": "read file", "limit": 1, "threshold": 0.2})
    assert (gateway.queries[0].limit, gateway.queries[0].threshold) == (1, 0.2)
    assert text_of(result).splitlines()[-1] == "1 of 3 shown; limit up to 10."


async def test_a_search_without_limits_requests_three_at_the_default_threshold() -> None:
    gateway = GatewayDouble()
    await call(gateway, "search_tools", {"query": "read file"})
    assert (gateway.queries[0].limit, gateway.queries[0].threshold) == (3, 0.35)


@pytest.mark.requirement("TS-003")
async def test_without_a_match_the_near_misses_and_a_hint_are_returned() -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "oven bread file"})
    assert not result.is_error
    assert text_of(result).splitlines() == [
        "No good match. Matched nothing: oven, bread.",
        "The nearest, which are guesses:",
        "files__read_file(path?) 0.33: Read the contents of a file. (has file)",
        "files__write_file(path?, text?) 0.33: Write text to a file. (has file)",
        "Say it in other words.",
    ]
    data = result.structured_content
    assert data is not None
    assert (data["good_match"], data["unmatched_words"], data["results"]) == (False, ["oven", "bread"], [])
    assert len(data["near_misses"]) == 2


async def test_a_result_of_a_low_threshold_that_does_not_fit_is_called_a_guess() -> None:
    arguments = {"query": "oven bread file", "threshold": 0.1, "limit": 1}
    result = await call(GatewayDouble(), "search_tools", arguments)
    assert text_of(result).splitlines() == [
        "No good match, the first is a guess. Matched nothing: oven, bread.",
        "files__read_file(path?) 0.33: Read the contents of a file. (has file)",
        "1 of 2 shown; limit up to 10.",
    ]
    assert result.structured_content is not None
    assert result.structured_content["good_match"] is False


async def test_a_good_match_below_the_threshold_is_not_called_a_bad_one() -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "read file zzz", "threshold": 0.9})
    assert text_of(result).splitlines()[:2] == ["Nothing reaches the threshold.", "The nearest:"]
    assert text_of(result).splitlines()[-1] == "Say it in other words, or a lower threshold."
    assert result.structured_content is not None
    assert result.structured_content["good_match"] is False


async def test_the_text_names_some_of_many_unmatched_words() -> None:
    arguments = {"query": " ".join(f"q{number}" for number in range(12))}
    result = await call(GatewayDouble(), "search_tools", arguments)
    assert text_of(result).splitlines()[0] == "No good match. Matched nothing: q0, q1, q2, q3, q4, q5, q6, q7, …."
    assert result.structured_content is not None
    assert len(result.structured_content["unmatched_words"]) == 12


@pytest.mark.requirement("TS-006")
async def test_a_keyword_only_answer_says_so() -> None:
    result = await call(GatewayDouble(semantic=False), "search_tools", {"query": "read file"})
    assert result.structured_content is not None
    assert result.structured_content["semantic"] is False


async def test_a_search_returns_schemas_on_request() -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "create issue", "limit": 1, "detail": "schema"})
    assert result.structured_content is not None
    assert result.structured_content["results"][0]["input_schema"] == ITEMS[2].input_schema
    assert json.loads(text_of(result).splitlines()[1]) == ITEMS[2].input_schema


@pytest.mark.requirement("TS-009")
async def test_a_search_returns_the_types_of_its_hits_on_request() -> None:
    result = await call(GatewayDouble(), "search_tools", {"query": "create issue", "limit": 1, "detail": "types"})
    assert result.structured_content is not None
    assert result.structured_content["types"] == ISSUE_TYPES
    assert text_of(result).endswith(f"\n{ISSUE_TYPES}")


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_is_described_in_full_and_no_word_twice(mode: str) -> None:
    result = await call(GatewayDouble(), "describe_tool", {"tool": "mcp__toolscript__github__create_issue"}, mode)
    expected = {
        "tool": "github__create_issue",
        "description": "Create an issue in a repository.",
        "input_schema": ITEMS[2].input_schema,
        "output_schema": ITEMS[2].output_schema,
        "annotations": ITEMS[2].annotations,
    }
    assert result.structured_content == {"tools": [expected]}
    assert text_of(result) == json.dumps(expected, separators=(",", ":"))


async def test_several_tools_are_described_in_the_order_they_were_named() -> None:
    names = ["files__write_file", "files__read_file", "files__write_file"]
    result = await call(GatewayDouble(), "describe_tool", {"tools": names})
    assert result.structured_content is not None
    assert [tool["tool"] for tool in result.structured_content["tools"]] == names[:2]


@pytest.mark.requirement("TS-009")
async def test_a_tool_is_described_as_types_without_its_schema() -> None:
    result = await call(GatewayDouble(), "describe_tool", {"tool": "files__read_file", "format": "types"})
    assert text_of(result) == "/** Read the contents of a file. */\nfiles__read_file(params?: { path?: string })"
    assert result.structured_content is not None
    assert "input_schema" not in result.structured_content["tools"][0]


async def test_a_name_that_is_a_little_wrong_gets_the_nearest_ones() -> None:
    names = ["files__read_file", "files__reed_file"]
    result = await call(GatewayDouble(), "describe_tool", {"tools": names})
    assert not result.is_error
    assert result.structured_content is not None
    (unknown,) = result.structured_content["unknown"]
    assert unknown["tool"] == "files__reed_file"
    assert "files__read_file" in unknown["nearest"]


async def test_a_prompt_is_not_a_tool() -> None:
    result = await call(GatewayDouble(), "describe_tool", {"tool": "files__summary"})
    assert result.is_error
    assert text_of(result).startswith("There is no tool 'files__summary'. Nearest: ")


@pytest.mark.requirement("TS-008")
@pytest.mark.parametrize("name", ["search_tools", "describe_tool"])
async def test_a_gateway_that_is_not_ready_returns_an_error_with_a_hint(name: str) -> None:
    gateway = GatewayDouble(found=(), broken=NotReady("no server is connected yet", hint="wait a moment"))
    arguments = {"query": "read file"} if name == "search_tools" else {"tool": "files__read_file"}
    result = await call(gateway, name, arguments)
    assert result.is_error
    expected = {
        "search_tools": "no server is connected yet. wait a moment",
        "describe_tool": "There is no tool 'files__read_file'. search_tools finds the ones there are.",
    }
    assert text_of(result) == expected[name]


WRONG = [
    ("search_tools", {}, "query must be a string"),
    ("search_tools", {"query": "  "}, "the query is blank. say in a few words what the tool should do"),
    ("search_tools", {"query": "x" * 1001}, "query is longer than 1000 characters"),
    ("search_tools", {"query": "x", "limit": 11}, "limit must be a whole number from 1 to 10"),
    ("search_tools", {"query": "x", "limit": True}, "limit must be a whole number from 1 to 10"),
    ("search_tools", {"query": "x", "threshold": "high"}, "threshold must be a number from 0 to 1"),
    ("search_tools", {"query": "x", "threshold": 2}, "threshold must be 0 to 1"),
    ("search_tools", {"query": "x", "detail": "all"}, "detail must be one of compact, types, schema"),
    (
        "search_tools",
        {"query": "x", "server": "github"},
        "search_tools has no argument 'server'. it takes query, limit, threshold, detail",
    ),
    ("describe_tool", {}, "tool must be given, or `tools`, and not both"),
    ("describe_tool", {"tool": "a__b", "tools": ["a__b"]}, "tool must be given, or `tools`, and not both"),
    ("describe_tool", {"tools": ["a__b"] * 11}, "tools must be a list of 1 to 10 names"),
    ("describe_tool", {"tools": [1]}, "tools must be a list of strings"),
    ("call_tool", {"tool": "a__b", "arguments": "[1]"}, "arguments must be an object"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
async def test_invalid_arguments_get_a_message_that_a_model_can_act_on(
    name: str, arguments: dict[str, object], message: str
) -> None:
    gateway = GatewayDouble()
    answer = await call(gateway, name, arguments)
    assert answer.is_error
    assert text_of(answer).startswith(message)
    assert (gateway.queries, gateway.calls) == ([], [])


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_that_is_not_one_of_the_three_is_an_error_of_the_protocol(mode: str) -> None:
    async with connected(GatewayDouble(), mode) as client:
        with pytest.raises(MCPError, match="go through call_tool") as refused:
            await client.call_tool("files__read_file", {})
    assert refused.value.code == INVALID_PARAMS


async def test_a_name_without_a_server_works_if_only_one_server_has_it() -> None:
    gateway = GatewayDouble()
    assert "github__create_issue" in text_of(await call(gateway, "describe_tool", {"tool": "create_issue"}))
    await call(gateway, "call_tool", {"tool": "create_issue", "arguments": {"title": "x"}})
    assert [name for name, _ in gateway.calls] == ["github__create_issue"]
    unknown = await call(gateway, "call_tool", {"tool": "nothing_like_it"})
    assert unknown.is_error
    assert "nothing_like_it" in text_of(unknown)


async def test_the_tools_of_each_step_are_named_and_described_once() -> None:
    class ByStep(GatewayDouble):
        async def search(self, query: LocalQuery) -> LocalAnswer:
            answer = await super().search(query)
            steps = [
                await super(ByStep, self).search(replace(query, text=text)) for text in query.text.split(" and ")
            ]
            return replace(
                answer, steps=tuple(LocalStep(step.query, step.hits[:1], step.good_match) for step in steps)
            )

    arguments = {"query": "read file and create issue and bake bread", "limit": 1, "threshold": 0.3}
    result = await call(ByStep(), "search_tools", arguments)
    data = result.structured_content
    assert data is not None
    assert [hit["tool"] for hit in data["results"]] == ["files__read_file", "github__create_issue"]
    assert data["steps"] == [
        {"query": "read file", "good_match": True, "tools": ["files__read_file"]},
        {"query": "create issue", "good_match": True, "tools": ["github__create_issue"]},
        {"query": "bake bread", "good_match": False, "tools": []},
    ]
    lines = text_of(result).splitlines()
    assert lines[lines.index("Steps:") + 1 :][:3] == [
        "- read file: files__read_file",
        "- create issue: github__create_issue",
        "- bake bread: nothing fits",
    ]
    async with connected(GatewayDouble()) as client:
        schema = (await client.list_tools()).tools[0].output_schema
    jsonschema.validate(data, closed(schema))


def test_a_name_of_several_servers_is_said_to_be_one() -> None:
    names = ("github__create_issue", "hub__create_issue", "hub__create_issues")
    assert no_such_tool(Unknown("create_issue", names)) == (
        "Several servers have a tool 'create_issue'. Name one: github__create_issue, hub__create_issue."
    )
    assert no_such_tool(Unknown("github__create_issu", names)).startswith("There is no tool")
