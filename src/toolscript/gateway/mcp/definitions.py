"""Definitions of the tools. Of the catalog they name the servers alone, so that prompt caches stay valid."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolscript.core.items import ItemKind, JsonObject
from toolscript.core.mcp.schemas import BOOLEAN, READ_ONLY, STRING, closed, list_of, object_of, whole_number
from toolscript.core.retrieval.query import MAX_QUERY
from toolscript.core.text import visible
from toolscript.gateway.json import ANSWER, HIT, ITEM
from toolscript.gateway.mcp.entry_tools import ENTRY_TOOLS
from toolscript.gateway.mcp.result_reading import MAX_PAGE_BYTES, PAGE_BYTES
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD

READ_RESULT = "read_result"
SEARCH = "search_tools"
DESCRIBE = "describe_tool"
CALL = "call_tool"
CALL_DESTRUCTIVE = "call_destructive_tool"

MAX_RESULTS = 10
MAX_DESCRIBED = 10

# Of the names of servers that are shown: of all together, and of one.
MAX_NAMES, MAX_NAME = 220, 40

# Of a server whose tools Codex holds back, its model is shown the first line, up to 250 characters.
INSTRUCTIONS = (
    "Finds and calls the tools of all MCP servers that the user has connected. For what your own tools cannot do, "
    "search_tools with the task in plain words, describe_tool if the arguments are not clear, then call_tool."
)

# A client with tool search of its own would hide these behind it: one search to find another, or to read on.
ALWAYS_LOADED: JsonObject = {"anthropic/alwaysLoad": True}

_TOOL = {"type": "string", "description": "A name that search_tools returned: server__tool."}

# The part of the HTTP answer that MCP returns: MCP field name to HTTP field name.
SHOWN_HIT = {
    "tool": "toolId",
    "signature": "signature",
    "confidence": "confidence",
    "description": "description",
    "reason": "reason",
    "also": "also",
    "paths": "paths",
    "deprecated": "deprecated",
    "input_schema": "inputSchema",
}
SHOWN_ANSWER = {
    "good_match": "good_match",
    "results": "results",
    "near_misses": "near_misses",
    "unmatched_words": "unmatched_words",
    "total": "totalResults",
    "semantic": "semantic",
    "model": "model",
    "hint": "hint",
    "read_as": "read_as",
}
SHOWN_ITEM = {
    "tool": "toolId",
    "description": "description",
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "annotations": "annotations",
}


def _shown(
    schema: Mapping[str, Any], names: Mapping[str, str], always: Sequence[str] = (), **more: JsonObject
) -> dict[str, object]:
    """Return the schema of these fields and of `more`, which replace fields of the same name or are optional.

    `always`: required here even when they are empty.
    """
    properties = {name: schema["properties"][full] for name, full in names.items()}
    required = [name for name, full in names.items() if full in schema["required"] or name in always]
    return object_of({**properties, **more}, *required)


_FOUND = list_of(_shown(HIT, SHOWN_HIT, risk=STRING, kind=STRING, use=STRING))
_STEPS = list_of(
    object_of(
        {"query": STRING, "good_match": BOOLEAN, "tools": list_of(STRING), "near_misses": list_of(STRING)},
        *("query", "good_match", "tools"),
    )
)
_SEARCH_TOOLS: JsonObject = {
    "name": SEARCH,
    "_meta": ALWAYS_LOADED,
    "title": "Search tools",
    "description": (
        "Find tools by what they do. Start here: say the task in plain words, such as 'create a GitHub issue'. "
        "For a task of several steps, `steps` names the tools of each. "
        "Returns the best tools as server__tool names, each with a confidence from 0 to 1. "
        "With no good match, the nearest are guesses: say it in other words or do without; "
        "the same words give the same answer. "
        "Then call_tool; before it describe_tool when the arguments are not clear, "
        "or ask here for detail 'types' or 'schema'."
    ),
    "inputSchema": closed(
        {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "The task."},
            "limit": whole_number(1, MAX_RESULTS, DEFAULT_LIMIT),
            "threshold": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": DEFAULT_THRESHOLD,
                "description": "Minimum confidence of a result.",
            },
            "detail": {
                "type": "string",
                "enum": ["compact", "types", "schema"],
                "default": "compact",
                "description": "Also the arguments: as TypeScript, or as JSON Schema.",
            },
            "kind": {"type": "string", "enum": [*ItemKind], "default": "tool"},
        },
        "query",
    ),
    "outputSchema": _shown(
        ANSWER, SHOWN_ANSWER, ["hint"], results=_FOUND, near_misses=_FOUND, steps=_STEPS, types=STRING
    ),
    "annotations": READ_ONLY,
}
_DESCRIBE_TOOL: JsonObject = {
    "name": DESCRIBE,
    "_meta": ALWAYS_LOADED,
    "title": "Describe tools",
    "description": (
        "Show what tools do, the arguments they take and what they return. "
        "Use it after search_tools and before call_tool when the arguments are not clear. "
        "Give one `tool`, or several as `tools`."
    ),
    "inputSchema": closed(
        {
            "tool": _TOOL,
            "tools": {"type": "array", "items": STRING, "minItems": 1, "maxItems": MAX_DESCRIBED},
            "format": {"type": "string", "enum": ["schema", "types"], "default": "schema"},
        }
    ),
    "outputSchema": object_of(
        {
            "tools": list_of(_shown(ITEM, SHOWN_ITEM)),
            "types": STRING,
            "unknown": list_of(object_of({"tool": STRING, "nearest": list_of(STRING)}, "tool", "nearest")),
        },
        "tools",
    ),
    "annotations": READ_ONLY,
}
_CALL_TOOL: JsonObject = {
    "name": CALL,
    "_meta": ALWAYS_LOADED,
    "title": "Call a tool",
    "description": (
        "Call a tool that search_tools found, with the arguments it takes. The answer is the tool's own. "
        "A tool may change or delete things: know what it does before you call it."
    ),
    "inputSchema": closed(
        {"tool": _TOOL, "arguments": {"type": "object", "description": "The tool's own arguments."}}, "tool"
    ),
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}

READ_RESULT_TOOL: JsonObject = {
    "name": READ_RESULT,
    "_meta": ALWAYS_LOADED,
    "title": "Read a large result",
    "description": "Read more of a result that was too large, by the id that came with it.",
    "inputSchema": closed(
        {
            "id": STRING,
            "offset": {"type": "integer", "minimum": 0, "description": "First byte."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_BYTES, "default": PAGE_BYTES},
            "grep": {"type": "string", "description": "Only the lines that match this regular expression."},
            "path": {"type": "string", "description": "Only this part of JSON: items[0].name, items[*].id"},
        },
        "id",
    ),
    "annotations": READ_ONLY,
}

DEFINITIONS: tuple[JsonObject, ...] = (
    _SEARCH_TOOLS,
    _DESCRIBE_TOOL,
    _CALL_TOOL,
    READ_RESULT_TOOL,
    *ENTRY_TOOLS,
)

# With a meta-tool for destructive tools: what a client can allow is this one.
_CALL_OTHER_TOOL: JsonObject = {
    **_CALL_TOOL,
    "description": (
        "Call a tool that search_tools found, with the arguments it takes. The answer is the tool's own. "
        f"Tools that count as destructive are refused: {CALL_DESTRUCTIVE} calls them."
    ),
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}
_CALL_DESTRUCTIVE_TOOL: JsonObject = {
    **_CALL_TOOL,
    "name": CALL_DESTRUCTIVE,
    "title": "Call a destructive tool",
    "description": "Call any tool as call_tool does, also one that may delete or overwrite things.",
    "inputSchema": closed({"tool": STRING, "arguments": {"type": "object"}}, "tool"),
}


def definitions_of_tools(*, split: bool, servers: Sequence[str] = ()) -> tuple[JsonObject, ...]:
    """Return the definitions; `split`: destructive tools have a meta-tool of their own. `servers` are named."""
    shown = servers_shown(servers)
    search = (
        {**_SEARCH_TOOLS, "description": f"{_SEARCH_TOOLS['description']} {shown}"} if shown else _SEARCH_TOOLS
    )
    calls = (_CALL_OTHER_TOOL, _CALL_DESTRUCTIVE_TOOL) if split else (_CALL_TOOL,)
    return (search, _DESCRIBE_TOOL, *calls, READ_RESULT_TOOL, *ENTRY_TOOLS)


def instructions(*, split: bool, servers: Sequence[str] = ()) -> str:
    destructive = f"Destructive tools go through {CALL_DESTRUCTIVE}." if split else ""
    return " ".join(filter(None, (INSTRUCTIONS, destructive, servers_shown(servers))))


def servers_shown(servers: Sequence[str]) -> str:
    """Return the names of the servers in one line, as many as there is room for, and how many there are."""
    names, left = list[str](), MAX_NAMES
    for server in sorted(servers):
        name = "_".join(visible(server).split())[:MAX_NAME]
        left -= len(name) + 2
        if left < 0:
            break
        names.append(name)
    if not servers:
        return ""
    more = ", …" if len(names) < len(servers) else ""
    return f"Servers: {', '.join(names)}{more} ({len(servers)})."
