"""The same step with a server, at `/mcp/all` and at `/mcp`; and what a client sees there as the server has it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.features.steps import Json, Observed, Step
from toolscript.core.items import tool_id
from toolscript.gateway.listed_tools import listed_name

# Tools that `describe_tool` shows at once, and what it shows of each.
DESCRIBED = 10
SHOWN = {"description": "description", "input_schema": "inputSchema", "output_schema": "outputSchema"}


def at_all(server: str, step: Step) -> Step:
    """Return the step at the direct endpoint."""
    params = dict(step.params)
    if step.method == "tools/call":
        params["name"] = listed_name(server, params["name"])
    return replace(step, params=_entries_named(server, step, params))


def at_joint(server: str, step: Step) -> Step:
    """Return the step at the joint endpoint, where tools are called with `call_tool`."""
    params = dict(step.params)
    if step.method == "tools/call":
        called = {"tool": tool_id(server, params["name"]), "arguments": params["arguments"]}
        params = {"name": "call_tool", "arguments": called}
    return replace(step, params=_entries_named(server, step, params))


def _entries_named(server: str, step: Step, params: dict[str, Any]) -> dict[str, Any]:
    if step.method == "prompts/get":
        return {**params, "name": tool_id(server, params["name"])}
    if step.method == "completion/complete" and params["ref"]["type"] == "ref/prompt":
        return {**params, "ref": {**params["ref"], "name": tool_id(server, params["ref"]["name"])}}
    return params


def describe_steps(server: str, tools: Sequence[Json]) -> list[Step]:
    """Return what a client of the joint endpoint does instead of listing the tools."""
    names = [tool_id(server, tool["name"]) for tool in tools]
    return [
        Step(
            "tools",
            f"described {begin}",
            "tools/call",
            {"name": "describe_tool", "arguments": {"tools": names[begin : begin + DESCRIBED]}},
        )
        for begin in range(0, len(names), DESCRIBED)
    ]


def described(server: str, observed: Observed) -> Json:
    """Return the tools that were described, by their own names and with the fields of MCP."""
    found: list[dict[str, Any]] = []
    for id_, outcome in observed.items():
        if id_.startswith(f"tools: {server}/described "):
            shown = (outcome.get("result") or {}).get("structuredContent") or {}
            found += [
                {
                    "name": tool["tool"].removeprefix(f"{server}__"),
                    **{name: tool[key] for key, name in SHOWN.items() if key in tool},
                }
                for tool in shown.get("tools", ())
            ]
    return {"tools": found}


def of_server(server: str, listed: Json, own: Json, name: str) -> Json:
    """Return of a list what a server has in it, under the names that it gave; `own` is its own list."""
    listed_as = {
        listed_name(server, entry["name"]) if name == "tools" else tool_id(server, entry["name"]): entry
        for entry in own.get(name, ())
    }
    addresses = {entry.get("uri") or entry.get("uriTemplate") for entry in own.get(name, ())} - {None}
    kept: list[Mapping[str, Any]] = []
    for entry in listed.get(name, ()):
        address = entry.get("uri") or entry.get("uriTemplate")
        if address is None and entry["name"] in listed_as:
            kept.append({**entry, "name": listed_as[entry["name"]]["name"]})
        elif address in addresses:
            kept.append(entry)
    return {name: kept}
