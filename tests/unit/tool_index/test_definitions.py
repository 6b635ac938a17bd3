"""Python functions and definitions of OpenAI, Anthropic and MCP become items; invalid ones say what to do."""

import functools
from typing import Any

import mcp.types
import pytest

from tests.unit.tool_index.definitions import (
    ALL,
    COMMIT,
    CONVERT,
    CREATE_ISSUE,
    LIST_ISSUES,
    PLAY,
    SCHEMA,
    Address,
    forecast,
    read_file,
    send_letter,
)
from toolscript.core.errors import InvalidRequest
from toolscript.tool_index.definitions import read_tools
from toolscript.tool_index.functions import function_definition, split_docstring

pytestmark = pytest.mark.requirement("AP-002")


def test_tools_of_every_kind_can_be_mixed() -> None:
    entries = read_tools(ALL)
    assert [entry.name for entry in entries] == [
        *("read_file", "forecast", "send_letter", "create_issue", "list_issues", "convert_currency"),
        *("music__play_song", "git__commit"),
    ]
    assert [entry.tool for entry in entries] == ALL


@pytest.mark.parametrize("tool", [CREATE_ISSUE, CREATE_ISSUE["function"]], ids=["chat", "function alone"])
def test_a_definition_keeps_its_description_and_schema(tool: object) -> None:
    (entry,) = read_tools([tool])
    assert entry.item.description == "Open an issue in a repository"
    assert entry.item.input_schema == SCHEMA


@pytest.mark.parametrize(
    ("tool", "server", "name"),
    [
        (PLAY, "music", "play_song"),
        (COMMIT, "git", "commit"),
        (PLAY | {"name": "mcp__music__play_song"}, "music", "play_song"),
        (CONVERT, "", "convert_currency"),
        (CONVERT | {"name": "__private"}, "", "__private"),
    ],
)
def test_the_server_before_a_name_is_that_of_the_item(tool: object, server: str, name: str) -> None:
    (entry,) = read_tools([tool])
    assert (entry.item.server, entry.item.name) == (server, name)
    assert not entry.item.is_document


def test_tools_of_the_same_name_are_told_apart_by_their_servers() -> None:
    entries = read_tools({"github": [CREATE_ISSUE], "gitlab": [CREATE_ISSUE, COMMIT]})
    assert [entry.name for entry in entries] == [
        *("github__create_issue", "gitlab__create_issue", "gitlab__git__commit"),
    ]
    assert entries[2].item.server == "gitlab"


def test_the_title_of_an_mcp_tool_stands_in_for_its_description() -> None:
    (entry,) = read_tools([mcp.types.Tool(name="x", title="Rename a branch", input_schema={"type": "object"})])
    assert entry.item.description == "Rename a branch"


def test_a_function_has_the_schema_of_its_type_hints_and_the_texts_of_its_docstring() -> None:
    definition = function_definition(read_file)
    assert definition["name"] == "read_file"
    assert definition["description"] == "Read a file from the disk.\n\nReturns:\n    The contents."
    assert definition["input_schema"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "Where the file is, from the root."},
            "encoding": {
                "type": "string",
                "default": "utf-8",
                "description": "How its letters are encoded.",
            },
            "mode": {"type": "string", "enum": ["text", "bytes"], "default": "text"},
        },
    }


def properties_of(function: Any) -> dict[str, Any]:
    schema: Any = function_definition(function)["input_schema"]
    return dict(schema["properties"])


def test_parameters_are_described_in_every_style_of_docstring() -> None:
    assert properties_of(forecast)["city"]["description"] == "The place to predict it for."
    assert properties_of(forecast)["days"]["description"] == "How far ahead."
    assert properties_of(send_letter)["to"]["description"] == "who gets it, and where"
    assert properties_of(send_letter)["subject"]["description"] == "the first line"
    assert function_definition(forecast)["description"] == (
        "Predict the weather.\n\nReturns\n-------\nstr\n    The prediction."
    )


@pytest.mark.parametrize("text", ["", "Args:", "Args:\n\n", "Parameters\n---", ":param x:", "Args:\n    no colon"])
def test_a_docstring_that_is_cut_short_is_read_all_the_same(text: str) -> None:
    description, parameters = split_docstring(text)
    assert not any(parameters.values())
    assert "colon" not in description


def test_a_hint_that_cannot_be_resolved_costs_only_its_own_type() -> None:
    def call(name: str, context: "Missing", other: object = None, *rest: int, **more: int) -> None:  # type: ignore[name-defined] # noqa: F821
        """Call."""

    schema: Any = function_definition(call)["input_schema"]
    assert schema["properties"] == {"name": {"type": "string"}, "context": {}, "other": {}}
    assert schema["required"] == ["name", "context"]


def test_types_of_a_function_with_an_unknown_one_stay_resolvable() -> None:
    class Unknown: ...

    def call(to: list[Address], unknown: Unknown) -> None:
        """Call."""

    schema: Any = function_definition(call)["input_schema"]
    assert schema["properties"]["unknown"] == {}
    assert set(schema["$defs"]["Address"]["properties"]) == {"street", "town"}


def test_methods_partial_functions_and_callable_objects_are_functions() -> None:
    class Counter:
        """Counts."""

        def count(self, start: int) -> int:
            """Count on."""
            return start

        def __call__(self, step: int) -> int:
            return step

    entries = read_tools([Counter().count, functools.partial(forecast, days=2), Counter()])
    assert [(entry.name, entry.item.description[:20]) for entry in entries] == [
        *(("count", "Count on."), ("forecast", "Predict the weather."), ("Counter", "Counts.")),
    ]
    assert all(entry.definition is None for entry in entries)


@pytest.mark.parametrize(
    ("tools", "message", "hint"),
    [
        ([3], "tool 1 is no tool: 3", "give a Python function"),
        ([dict], "tool 1 is no tool", "give a Python function"),
        ([CONVERT, {"name": "x"}], "tool 2 has no schema of its arguments", "`parameters` (OpenAI"),
        ([{"type": "web_search"}], "tool 1 has no definition", "the provider runs"),
        ([lambda x: x], "tool 1: <lambda> has no name", "with `def`"),
        ([CONVERT | {"name": ""}], "tool 1: name is missing", "leave the tool out"),
        ([CONVERT | {"name": 5}], "tool 1: name must be text", "leave the tool out"),
        ([CONVERT | {"name": "a\u200bb"}], "tool 1: its name has an invisible character", "leave the tool out"),
        ([LIST_ISSUES | {"parameters": []}], "tool 1: parameters must be a JSON object", "correct the definition"),
        ([PLAY | {"inputSchema": 1}], "tool 1: inputSchema must be a JSON object", "correct the definition"),
        ([LIST_ISSUES | {"parameters": {"a": {1}}}], "tool 1: this is no JSON", "correct the definition"),
        ([CONVERT, CONVERT], "tool 2: the name 'convert_currency' is taken by tool 1", "under its name"),
        ({"bank": [CONVERT, CONVERT]}, "tool 2 of 'bank': the name 'bank__convert_currency'", "rename one"),
        (CONVERT, "tools must be a list", "write [tool]"),
        (CREATE_ISSUE, "tools must be a list", "write [tool]"),
        ("read_file", "tools must be a list", "write [tool]"),
        (7, "tools must be a list", "write [tool]"),
        ({"bank": CONVERT}, "the tools of 'bank' must be a list", "give a Python function"),
    ],
)
def test_what_is_no_tool_is_refused_with_what_to_do(tools: Any, message: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_tools(tools)
    assert raised.value.message.startswith(message)
    assert hint in raised.value.hint
