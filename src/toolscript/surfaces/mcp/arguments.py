"""What a model wrote as arguments, read once. What cannot be understood is said so that it can be put right."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.errors import InvalidRequest
from toolscript.model.gateway import DEFAULT_THRESHOLD, LocalQuery
from toolscript.model.items import JsonObject
from toolscript.model.tool_ids import split_tool_id, tool_id
from toolscript.surfaces.mcp.definitions import CALL, DEFAULT_LIMIT, DESCRIBE, MOST_DESCRIBED, MOST_RESULTS, SEARCH


@dataclass(frozen=True)
class SearchAsked:
    query: LocalQuery
    detail: str


@dataclass(frozen=True)
class DescribeAsked:
    tools: tuple[str, ...]
    as_types: bool


@dataclass(frozen=True)
class CallAsked:
    tool: str
    arguments: JsonObject


def search_asked(given: JsonObject) -> SearchAsked:
    _only(SEARCH, given, ("query", "limit", "threshold", "detail"))
    limit = given.get("limit", DEFAULT_LIMIT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_RESULTS:
        raise _wrong("limit", f"must be a whole number from 1 to {MOST_RESULTS}")
    threshold = given.get("threshold", DEFAULT_THRESHOLD)
    if not isinstance(threshold, int | float) or isinstance(threshold, bool):
        raise _wrong("threshold", "must be a number from 0 to 1")
    detail = _one_of(given, "detail", ("compact", "types", "schema"))
    return SearchAsked(LocalQuery(_text(given, "query"), limit, float(threshold)), detail)


def describe_asked(given: JsonObject) -> DescribeAsked:
    _only(DESCRIBE, given, ("tool", "tools", "format"))
    as_types = _one_of(given, "format", ("schema", "types")) == "types"
    if ("tool" in given) == ("tools" in given):
        raise _wrong("tool", "must be given, or `tools`, and not both")
    names = [_text(given, "tool")] if "tool" in given else _texts(given, "tools")
    return DescribeAsked(tuple(dict.fromkeys(full_name(name) for name in names)), as_types)


def call_asked(given: JsonObject) -> CallAsked:
    _only(CALL, given, ("tool", "arguments"))
    return CallAsked(full_name(_text(given, "tool")), _arguments(given.get("arguments")))


def full_name(name: str) -> str:
    """The name without what a client puts before it."""
    return tool_id(*split_tool_id(name))


def _arguments(value: object) -> JsonObject:
    # Models write an object as a string of JSON now and then, and mean the object.
    read = _from_json(value) if isinstance(value, str) else value
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise _wrong("arguments", "must be an object")
    return read


def _from_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _only(tool: str, given: JsonObject, known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidRequest(
            f"{tool} has no argument {unknown[0][:100]!r}",
            hint=f"it takes {', '.join(known)}",
            details={"field": unknown[0][:100]},
        )


def _text(given: JsonObject, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise _wrong(name, "must be a string")
    return value


def _texts(given: JsonObject, name: str) -> list[str]:
    values = given[name]
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_DESCRIBED:
        raise _wrong(name, f"must be a list of 1 to {MOST_DESCRIBED} names")
    if not all(isinstance(value, str) for value in values):
        raise _wrong(name, "must be a list of strings")
    return values


def _one_of(given: JsonObject, name: str, allowed: Sequence[str]) -> str:
    """The value; the first of the allowed ones when none is given."""
    value = given.get(name, allowed[0])
    if not isinstance(value, str) or value not in allowed:
        raise _wrong(name, f"must be one of {', '.join(allowed)}")
    return value


def _wrong(name: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"{name} {rule}", details={"field": name})
