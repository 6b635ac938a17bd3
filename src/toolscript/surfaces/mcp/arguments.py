"""What a model wrote as arguments of the three tools, read once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.model.gateway import DEFAULT_THRESHOLD, LocalQuery
from toolscript.model.items import JsonObject
from toolscript.model.text import readable
from toolscript.model.tool_ids import SEPARATOR, split_tool_id, tool_id
from toolscript.surfaces.mcp.argument_reading import one_of, require_known, share, text, texts, whole, wrong
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
    require_known(SEARCH, given, ("query", "limit", "threshold", "detail"))
    limit = whole(given, "limit", DEFAULT_LIMIT, 1, MOST_RESULTS)
    threshold = share(given, "threshold", DEFAULT_THRESHOLD)
    detail = one_of(given, "detail", ("compact", "types", "schema"))
    return SearchAsked(LocalQuery(text(given, "query"), limit, threshold), detail)


def describe_asked(given: JsonObject) -> DescribeAsked:
    require_known(DESCRIBE, given, ("tool", "tools", "format"))
    as_types = one_of(given, "format", ("schema", "types")) == "types"
    if ("tool" in given) == ("tools" in given):
        raise wrong("tool", "must be given, or `tools`, and not both")
    names = [text(given, "tool")] if "tool" in given else texts(given, "tools", MOST_DESCRIBED)
    return DescribeAsked(tuple(dict.fromkeys(full_name(name) for name in names)), as_types)


def call_asked(given: JsonObject) -> CallAsked:
    require_known(CALL, given, ("tool", "arguments"))
    return CallAsked(full_name(text(given, "tool")), _arguments(given.get("arguments")))


def full_name(name: str) -> str:
    """The name without what a client puts before it. One without a server may be clear all the same."""
    return tool_id(*split_tool_id(name)) if SEPARATOR in name else readable(name)


def _arguments(value: object) -> JsonObject:
    # Models write an object as a string of JSON now and then, and mean the object.
    read = _from_json(value) if isinstance(value, str) else value
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise wrong("arguments", "must be an object")
    return read


def _from_json(given: str) -> object:
    try:
        return json.loads(given)
    except ValueError:
        return given
