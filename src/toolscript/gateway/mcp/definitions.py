"""What a client is told about the three tools. Never depends on the catalog, so that a prompt cache stays warm."""

from toolscript.core.items import JsonObject
from toolscript.core.mcp.schemas import (
    ANY_OBJECT,
    BOOLEAN,
    INTEGER,
    NUMBER,
    READ_ONLY,
    STRING,
    closed,
    list_of,
    object_of,
    whole_number,
)
from toolscript.core.retrieval.query import MAX_QUERY
from toolscript.gateway.model import DEFAULT_THRESHOLD

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

_FOUND = object_of(
    {
        "tool": STRING,
        "confidence": NUMBER,
        "description": STRING,
        "reason": STRING,
        "input_schema": ANY_OBJECT,
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
    "inputSchema": closed(
        {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "The task."},
            "limit": whole_number(1, MOST_RESULTS, DEFAULT_LIMIT),
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
    "outputSchema": object_of(
        {
            "good_match": BOOLEAN,
            "results": list_of(_FOUND),
            "near_misses": list_of(_FOUND),
            "unmatched_words": list_of(STRING),
            "total": INTEGER,
            "semantic": BOOLEAN,
            "hint": STRING,
            "types": STRING,
        },
        *("good_match", "results", "total", "semantic", "hint"),
    ),
    "annotations": READ_ONLY,
}
_DESCRIBED = object_of(
    {
        "tool": STRING,
        "description": STRING,
        "input_schema": ANY_OBJECT,
        "output_schema": ANY_OBJECT,
        "annotations": ANY_OBJECT,
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
    "inputSchema": closed(
        {
            "tool": _TOOL,
            "tools": {"type": "array", "items": STRING, "minItems": 1, "maxItems": MOST_DESCRIBED},
            "format": {"type": "string", "enum": ["schema", "types"], "default": "schema"},
        }
    ),
    "outputSchema": object_of(
        {
            "tools": list_of(_DESCRIBED),
            "types": STRING,
            "unknown": list_of(object_of({"tool": STRING, "nearest": list_of(STRING)}, "tool", "nearest")),
        },
        "tools",
    ),
    "annotations": READ_ONLY,
}
_CALL_TOOL: JsonObject = {
    "name": CALL,
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

DEFINITIONS: tuple[JsonObject, ...] = (_SEARCH_TOOLS, _DESCRIBE_TOOL, _CALL_TOOL)
