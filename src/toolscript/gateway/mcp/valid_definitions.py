"""Definitions of servers as clients can read them: one that is malformed must not hide the others of its list."""

from collections.abc import Mapping, Sequence

from mcp_types.methods import serialize_server_result
from pydantic import ValidationError

from toolscript.core.items import JsonObject


def valid_definitions(
    method: str, field: str, definitions: Sequence[JsonObject], protocol: str
) -> list[JsonObject]:
    """Return the definitions of a list, the field of its method's result, for clients of this version."""
    if _is_valid(method, field, definitions, protocol):
        return [*definitions]
    forms = ((definition, _plain(definition)) for definition in definitions)
    return [whole if _is_valid(method, field, [whole], protocol) else plain for whole, plain in forms]


def _is_valid(method: str, field: str, definitions: Sequence[JsonObject], protocol: str) -> bool:
    page = {field: [*definitions], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    try:
        serialize_server_result(method, protocol, page)
    except ValidationError:
        return False
    return True


def _plain(definition: JsonObject) -> JsonObject:
    """Return what every version knows of a tool, a prompt, a resource or a template."""
    texts = ("name", "description", "uri", "uriTemplate")
    plain: JsonObject = {name: definition[name] for name in texts if isinstance(definition.get(name), str)}
    arguments, schema = definition.get("arguments"), definition.get("inputSchema")
    if isinstance(arguments, list):
        plain = {**plain, "arguments": [*map(_argument, filter(_has_name, arguments))]}
    if "inputSchema" in definition:
        # Every version takes an object as arguments, and some servers do not say so.
        typed = {**schema, "type": "object"} if isinstance(schema, Mapping) else {"type": "object"}
        plain = {**plain, "inputSchema": typed}
    return plain


def _has_name(argument: object) -> bool:
    return isinstance(argument, Mapping) and isinstance(argument.get("name"), str)


def _argument(argument: JsonObject) -> JsonObject:
    return {"name": argument["name"], "required": argument.get("required") is True}
