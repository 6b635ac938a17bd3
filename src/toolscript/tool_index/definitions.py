"""Tool definitions as items: Python functions, and the JSON of OpenAI, Anthropic and MCP."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from toolscript.core.errors import InvalidRequest
from toolscript.core.item_json import storable, visible_item_from_json
from toolscript.core.items import SEPARATOR, JsonObject, tool_id
from toolscript.core.mcp_client.listing import tool_fields
from toolscript.tool_index.functions import function_definition
from toolscript.tool_index.model import Entry, Tools, ToolT

# Agents name the tools of MCP servers `mcp__server__tool`.
MCP_PREFIX = "mcp__"
MAX_SHOWN = 80
SHAPES = (
    "give a Python function, an mcp.types.Tool, or a dict with `name`, `description` and the JSON Schema of the "
    "arguments: `parameters` (OpenAI; in Chat Completions inside `function`), `input_schema` (Anthropic) or "
    "`inputSchema` (MCP)"
)
HOSTED = "a tool that the provider runs has nothing to search: send it along with the tools that were found"


def read_tools(tools: Tools[ToolT], taken: Iterable[str] = ()) -> list[Entry[ToolT]]:
    """Read tools of any kind; raise for the first that is invalid, or whose name is taken."""
    places = dict.fromkeys(taken, "the index")
    entries = []
    for place, server, tool in _placed(tools):
        entry = _entry(tool, server, place)
        if entry.name in places:
            raise InvalidRequest(
                f"{place}: the name {entry.name!r} is taken by {places[entry.name]}",
                hint=_hint_for_taken(entry.name, places[entry.name], server),
            )
        places[entry.name] = place
        entries.append(entry)
    return entries


def _hint_for_taken(name: str, place: str, server: str) -> str:
    if place == "the index":
        return f"to replace it, remove({name!r}) first"
    by_server = "" if server else ", or give the tools of each server under its name: {'server': [...]}"
    return f"rename one of them{by_server}"


def _placed(tools: Tools[ToolT]) -> Iterator[tuple[str, str, ToolT]]:
    """Yield each tool with its place, for error messages, and with its server."""
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable) or _is_one_tool(tools):
        raise InvalidRequest("tools must be a list of tools", hint="write [tool], or {'server': [tool]}")
    if not isinstance(tools, Mapping):
        yield from ((f"tool {number}", "", tool) for number, tool in enumerate(tools, 1))
        return
    for server, of_server in tools.items():
        if isinstance(of_server, str | bytes | Mapping) or not isinstance(of_server, Iterable):
            raise InvalidRequest(f"the tools of {server!r} must be a list of tools", hint=SHAPES)
        yield from (
            (f"tool {number} of {server!r}", str(server), tool) for number, tool in enumerate(of_server, 1)
        )


def _is_one_tool(tools: object) -> bool:
    return isinstance(tools, Mapping) and (isinstance(tools.get("name"), str) or "function" in tools)


def _entry(tool: ToolT, server: str, place: str) -> Entry[ToolT]:
    definition = _plain(tool, place)
    fields, schema = _fields(definition, place)
    try:
        item = visible_item_from_json(_named(fields, server), needs_server=False)
        kept = cast("JsonObject", storable(definition))
        json.dumps(kept)
    except (InvalidRequest, TypeError, ValueError) as error:
        problem = error.message if isinstance(error, InvalidRequest) else f"this is no JSON: {error}"
        raise InvalidRequest(
            f"{place}: {problem.replace('input_schema', schema)} in {_shown(definition)}",
            hint="correct the definition, or leave the tool out",
        ) from error
    return Entry(item.key, tool, item, server, None if _is_function(tool) else kept)


def _plain(tool: object, place: str) -> JsonObject:
    """Return the definition of a tool as JSON data."""
    if isinstance(tool, Mapping):
        return tool
    if _is_function(tool):
        try:
            return function_definition(cast("Callable[..., object]", tool))
        except InvalidRequest as error:
            raise InvalidRequest(f"{place}: {error.message}", hint=error.hint) from error
    # A model of Pydantic, such as mcp.types.Tool; not imported, because few programs have one.
    if hasattr(tool, "model_dump") and not isinstance(tool, type):
        return cast("JsonObject", cast("Any", tool).model_dump(mode="json", by_alias=True, exclude_none=True))
    raise InvalidRequest(f"{place} is no tool: {_shown(tool)}", hint=SHAPES)


def _is_function(tool: object) -> bool:
    return callable(tool) and not isinstance(tool, type | Mapping) and not hasattr(tool, "model_dump")


def _fields(definition: JsonObject, place: str) -> tuple[JsonObject, str]:
    """Return the fields of the item, and what this kind of definition calls the schema of the arguments."""
    if isinstance(function := definition.get("function"), Mapping):
        definition = function
    elif definition.get("type", "function") not in ("function", "custom"):
        raise InvalidRequest(f"{place} has no definition: {_shown(definition)}", hint=HOSTED)
    elif "inputSchema" in definition:
        return tool_fields(definition), "inputSchema"
    schema = next((name for name in ("parameters", "input_schema") if name in definition), "")
    if not schema and "type" not in definition and function is None:
        raise InvalidRequest(f"{place} has no schema of its arguments: {_shown(definition)}", hint=SHAPES)
    kept = {name: definition.get(name) for name in ("name", "description")}
    return {**kept, "input_schema": definition.get(schema)}, schema or "parameters"


def _named(fields: JsonObject, server: str) -> JsonObject:
    """Return the fields with the server apart from the name: `github__create_issue` is of the server github."""
    name = fields.get("name")
    if not isinstance(name, str):
        return fields
    if server:
        return {**fields, "id": tool_id(server, name.strip()), "server": server}
    before, _, after = name.strip().removeprefix(MCP_PREFIX).partition(SEPARATOR)
    split = {"server": before, "name": after} if before and after else {}
    return {**fields, "id": name, **split}


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
