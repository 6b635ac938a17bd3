"""What a client is told about the three tools. Never depends on the catalog, so that a prompt cache stays warm."""

from collections.abc import Mapping

from toolscript.model.gateway import DEFAULT_THRESHOLD
from toolscript.model.items import JsonObject
from toolscript.model.queries import MAX_QUERY

SEARCH = "search_tools"
DESCRIBE = "describe_tool"
CALL = "call_tool"

DEFAULT_LIMIT = 5
MOST_RESULTS = 10
MOST_DESCRIBED = 10

INSTRUCTIONS = (
    "Many tools of many servers stand behind these three. "
    "search_tools with the task in plain words, describe_tool if the arguments are not clear, then call_tool."
)

_TOOL = {"type": "string", "description": "A name that search_tools returned: server__tool."}
_STRING: JsonObject = {"type": "string"}
_ANY_OBJECT: JsonObject = {"type": "object"}


def _object(properties: Mapping[str, JsonObject], *required: str) -> dict[str, object]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _closed(properties: Mapping[str, JsonObject], *required: str) -> dict[str, object]:
    return {**_object(properties, *required), "additionalProperties": False}


def _list(of: JsonObject) -> JsonObject:
    return {"type": "array", "items": of}


_FOUND = _object(
    {
        "tool": _STRING,
        "confidence": {"type": "number"},
        "description": _STRING,
        "reason": _STRING,
        "input_schema": _ANY_OBJECT,
    },
    *("tool", "confidence", "description", "reason"),
)
_SEARCH_TOOLS: JsonObject = {
    "name": SEARCH,
    "title": "Search tools",
    "description": (
        "Find tools by what they do. Start here: say one task in plain words, such as 'create a GitHub issue'. "
        "Returns the best tools as server__tool names, each with a confidence from 0 to 1. "
        "With no good match, say it in other words or do without; the same words give the same answer. "
        "Then call_tool; before it describe_tool when the arguments are not clear, "
        "or ask here for detail 'types' or 'schema'."
    ),
    "inputSchema": _closed(
        {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "The task."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "default": DEFAULT_LIMIT},
            "threshold": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": DEFAULT_THRESHOLD,
                "description": "Least confidence of a result.",
            },
            "detail": {
                "type": "string",
                "enum": ["compact", "types", "schema"],
                "default": "compact",
                "description": "Also the arguments: as TypeScript, or as JSON Schema.",
            },
        },
        "query",
    ),
    "outputSchema": _object(
        {
            "good_match": {"type": "boolean"},
            "results": _list(_FOUND),
            "near_misses": _list(_FOUND),
            "unmatched_words": _list(_STRING),
            "total": {"type": "integer"},
            "semantic": {"type": "boolean"},
            "hint": _STRING,
            "types": _STRING,
        },
        *("good_match", "results", "total", "semantic", "hint"),
    ),
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}
_DESCRIBED = _object(
    {
        "tool": _STRING,
        "description": _STRING,
        "input_schema": _ANY_OBJECT,
        "output_schema": _ANY_OBJECT,
        "annotations": _ANY_OBJECT,
    },
    *("tool", "description"),
)
_DESCRIBE_TOOL: JsonObject = {
    "name": DESCRIBE,
    "title": "Describe tools",
    "description": (
        "Show what tools do, the arguments they take and what they return. "
        "Use it after search_tools and before call_tool when the arguments are not clear. "
        "Give one `tool`, or several as `tools`."
    ),
    "inputSchema": _closed(
        {
            "tool": _TOOL,
            "tools": {"type": "array", "items": _STRING, "minItems": 1, "maxItems": MOST_DESCRIBED},
            "format": {"type": "string", "enum": ["schema", "types"], "default": "schema"},
        }
    ),
    "outputSchema": _object(
        {
            "tools": _list(_DESCRIBED),
            "types": _STRING,
            "unknown": _list(_object({"tool": _STRING, "nearest": _list(_STRING)}, "tool", "nearest")),
        },
        "tools",
    ),
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}
_CALL_TOOL: JsonObject = {
    "name": CALL,
    "title": "Call a tool",
    "description": (
        "Call a tool that search_tools found, with the arguments it takes. The answer is the tool's own. "
        "A tool may change or delete things: know what it does before you call it."
    ),
    "inputSchema": _closed(
        {"tool": _TOOL, "arguments": {"type": "object", "description": "The tool's own arguments."}}, "tool"
    ),
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}

DEFINITIONS: tuple[JsonObject, ...] = (_SEARCH_TOOLS, _DESCRIBE_TOOL, _CALL_TOOL)
