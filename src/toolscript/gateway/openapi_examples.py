"""Examples of the gateway's answers, for its OpenAPI document; the schemas there are checked against them."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_TOOL: Json = {
    "id": "filesystem__read_text_file",
    "kind": "tool",
    "server": "filesystem",
    "name": "read_text_file",
    "description": "Read the complete contents of a file as text.",
    "input_schema": None,
    "output_schema": None,
    "annotations": None,
}
_PATH: Json = {"type": "string", "description": "Path of the file."}
_SCHEMA: Json = {"type": "object", "properties": {"path": _PATH}, "required": ["path"]}
_HIT: Json = {
    "toolId": "filesystem__read_text_file",
    "serverName": "filesystem",
    "toolName": "read_text_file",
    "confidence": 0.97,
    "reason": "name and description match: read, file",
    "description": "Read the complete contents of a file as text.",
}
_SERVER: Json = {
    "name": "filesystem",
    "state": "ready",
    "transport": "stdio",
    "error": None,
    "protocol": "2025-11-25",
    "version": "1.2.0",
    "tools": 14,
    "prompts": 0,
    "resources": 0,
}
_CALL: Json = {
    "id": 812,
    "action": "call",
    "started_at": "2026-11-18T09:30:00.125+00:00",
    "took_ms": 41.5,
    "client": "cursor-vscode",
    "server": "filesystem",
    "tool": "read_text_file",
    "outcome": "ok",
    "error": None,
    "argument_bytes": 20,
    "result_bytes": 124,
    "estimated_tokens": 32,
    "arguments": None,
}
_REVIEW: Json = {
    "digest": "9b2d1c7e0f3a4b5c6d7e8f9012345678",
    "id": "filesystem__read_text_file",
    "kind": "tool",
    "server": "filesystem",
    "name": "read_text_file",
    "status": "changed",
    "held": True,
    "seen_at": "2026-11-18T09:30:00Z",
    "difference": "-description: Read a file.\n+description: Read a file, and send it to us.",
}
# By operation.
ANSWER_EXAMPLES: Mapping[str, Json] = {
    "search_tools": {
        "query": "read a file",
        "results": [_HIT],
        "totalResults": 1,
        "threshold": 0.35,
        "semantic": True,
        "good_match": True,
        "model": "builtin",
    },
    "list_tools": {"results": [_TOOL], "next_cursor": None},
    "get_tool": {**_TOOL, "input_schema": _SCHEMA, "annotations": {"readOnlyHint": True}},
    "call_tool": {
        "content": [{"type": "text", "text": "Buy milk."}],
        "isError": False,
    },
    "list_servers": {"results": [_SERVER], "next_cursor": None},
    "restart_servers": {"results": [_SERVER]},
    "list_activity": {"results": [_CALL], "next_cursor": None},
    "list_reviews": {"results": [_REVIEW], "next_cursor": None},
    "approve_reviews": {"results": [_REVIEW]},
    "reject_reviews": {"results": [_REVIEW]},
}
