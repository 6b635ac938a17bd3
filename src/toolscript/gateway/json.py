"""JSON conversion of the gateway's values, for HTTP and `--json`; MCP returns a part of it.

What ends in `_shown` is the JSON of `/api/v1`, in the words of the service; the rest has its own field names.
Plain schemas and not Pydantic's, because a command that calls a running gateway must start at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any

from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, ItemKind, JsonObject, tool_id
from toolscript.core.mcp.schemas import ANY_OBJECT, BOOLEAN, INTEGER, NUMBER, STRING, list_of, object_of
from toolscript.core.mcp_client.model import (
    CallResult,
    ServerState,
    ServerStatus,
    Transport,
    without_server_output,
)
from toolscript.core.signatures import signature
from toolscript.gateway.model import GatewayHealth, LocalAnswer, LocalHit, LocalStep, ScoreParts, WordMatch
from toolscript.gateway.rules import Basis, Risk, ToolRisk

Json = dict[str, Any]

# The part of a search as the service names it (`Part`, whose module would import asyncio into every command).
EMBEDDING = "embedding"

_OBJECT_OR_NULL: JsonObject = {"type": ["object", "null"]}
_NAMED: dict[str, JsonObject] = {"toolId": STRING, "serverName": STRING, "toolName": STRING, "description": STRING}
_SCHEMAS = dict.fromkeys(("inputSchema", "outputSchema", "annotations"), _OBJECT_OR_NULL)
ITEM = object_of({**_NAMED, "kind": STRING, **_SCHEMAS}, *_NAMED, "kind")
RISK = object_of(
    {
        "level": {"type": "string", "enum": [*Risk]},
        "basis": {"type": "string", "enum": [*Basis]},
    },
    *("level", "basis"),
)
HIT = object_of(
    {
        **_NAMED,
        "confidence": NUMBER,
        "reason": STRING,
        "kind": STRING,
        "signature": STRING,
        "also": list_of(STRING),
        "deprecated": BOOLEAN,
        "paths": ANY_OBJECT,
        "risk": RISK,
        "parts": ANY_OBJECT,
        **_SCHEMAS,
    },
    *(*_NAMED, "confidence", "reason"),
)
STEP = object_of(
    {"query": STRING, "good_match": BOOLEAN, "results": list_of(HIT), "near_misses": list_of(HIT)},
    *("query", "good_match", "results"),
)
ANSWER = object_of(
    {
        "query": STRING,
        "results": list_of(HIT),
        "totalResults": INTEGER,
        "threshold": NUMBER,
        "semantic": BOOLEAN,
        "model": STRING,
        "good_match": BOOLEAN,
        "unmatched_words": list_of(STRING),
        "hint": STRING,
        "read_as": STRING,
        "rules": list_of(STRING),
        "near_misses": list_of(HIT),
        "steps": list_of(STEP),
    },
    *("query", "results", "totalResults", "threshold", "semantic", "good_match"),
)


def tool_shown(item: Item, *, schemas: bool) -> Json:
    return {
        "id": tool_id(item.server, item.name),
        "kind": item.kind.value,
        "server": item.server,
        "name": item.name,
        "description": item.description,
        "input_schema": item.input_schema if schemas else None,
        "output_schema": item.output_schema if schemas else None,
        "annotations": item.annotations if schemas else None,
    }


def answer_shown(answer: LocalAnswer, *, explain: bool, schemas: bool) -> Json:
    """Return `results`, `steps` and `metadata`. The route adds `query_id` and what it alone knows."""
    used = answer.search_type_used
    return {
        "results": [_hit_shown(hit, explain=explain, schemas=schemas) for hit in answer.hits],
        "steps": _steps(answer, lambda hit: _hit_shown(hit, explain=explain, schemas=schemas)),
        "metadata": {
            "query": answer.query,
            "search_type": used.value,
            "threshold": answer.threshold,
            "degraded": [] if used is answer.search_type else [EMBEDDING],
            "model": answer.model,
            "index_version": answer.index_version,
            "weights_version": answer.weights_version,
            "candidate_count": answer.total,
            "good_match": answer.good_match,
            "unmatched_words": list(answer.unmatched),
            "near_misses": [_hit_shown(hit, explain=explain, schemas=schemas) for hit in answer.near_misses],
            "hint": answer.hint or None,
            "read_as": answer.read_as or None,
            "rules": list(answer.rules) if explain else None,
        },
    }


def _steps(answer: LocalAnswer, shown: Callable[[LocalHit], Json]) -> list[Json]:
    return [
        {
            "query": step.query,
            "good_match": step.good_match,
            "results": [*map(shown, step.hits)],
            "near_misses": [*map(shown, step.near_misses)],
        }
        for step in answer.steps
    ]


def _hit_shown(hit: LocalHit, *, explain: bool, schemas: bool) -> Json:
    explanation = asdict(hit.parts) if explain else None
    risk = hit.risk.to_json() if hit.risk else None
    found = {"confidence": hit.confidence, "reason": hit.reason, "risk": risk, "explanation": explanation}
    found |= {"signature": signature(hit.item) or None, "also": list(hit.also), "deprecated": hit.deprecated}
    found |= {"paths": dict(hit.paths)}
    return tool_shown(hit.item, schemas=schemas) | found


def call_shown(result: CallResult) -> Json:
    return {
        "content": list(result.content),
        "structured_content": result.structured_content,
        "is_error": result.is_error,
    }


def server_shown(server: ServerState) -> Json:
    (data,) = states_to_json([server])
    absent = {name: data[name] or None for name in ("error", "protocol", "version")}
    return {"name": server.name, "state": data.pop("status"), **data, **absent}


def answer_to_json(answer: LocalAnswer, *, explain: bool = False, schemas: bool = False) -> Json:
    """`explain`: also what one needs to call a hit, and what calling it may do."""
    shown = partial(_hit_to_json, explain=explain, schemas=schemas)
    data: Json = {
        "query": answer.query,
        "results": [shown(hit) for hit in answer.hits],
        "totalResults": answer.total,
        "threshold": answer.threshold,
        "semantic": answer.semantic,
        "good_match": answer.good_match,
    }
    if answer.model:
        data["model"] = answer.model
    if answer.unmatched:
        data["unmatched_words"] = list(answer.unmatched)
    if answer.hint:
        data["hint"] = answer.hint
    if answer.read_as:
        data["read_as"] = answer.read_as
    if explain and answer.rules:
        data["rules"] = list(answer.rules)
    if answer.steps:
        data["steps"] = _steps(answer, shown)
    if answer.near_misses:
        data["near_misses"] = [shown(hit) for hit in answer.near_misses]
    return data


def answer_from_json(data: Mapping[str, Any]) -> LocalAnswer:
    return LocalAnswer(
        query=data["query"],
        hits=tuple(map(_hit_from_json, data["results"])),
        total=data["totalResults"],
        threshold=data["threshold"],
        semantic=data["semantic"],
        hint=data.get("hint", ""),
        near_misses=tuple(map(_hit_from_json, data.get("near_misses", ()))),
        good_match=data.get("good_match", True),
        unmatched=tuple(data.get("unmatched_words", ())),
        rules=tuple(data.get("rules", ())),
        read_as=data.get("read_as", ""),
        steps=tuple(map(_step_from_json, data.get("steps", ()))),
        model=data.get("model"),
    )


def item_to_json(item: Item, *, schemas: bool) -> Json:
    data: Json = {
        "toolId": tool_id(item.server, item.name),
        "kind": item.kind.value,
        "serverName": item.server,
        "toolName": item.name,
        "description": item.description,
    }
    if schemas:
        data |= {
            "inputSchema": item.input_schema,
            "outputSchema": item.output_schema,
            "annotations": item.annotations,
        }
    return data


def item_of_json(data: Mapping[str, Any]) -> Item:
    return item_from_json(
        {
            "type": data["kind"],
            "server": data["serverName"],
            "name": data["toolName"],
            "description": data["description"],
            "input_schema": data.get("inputSchema"),
            "output_schema": data.get("outputSchema"),
            "annotations": data.get("annotations"),
        }
    )


def call_to_json(result: CallResult) -> Json:
    data: Json = {"content": list(result.content), "isError": result.is_error}
    if result.structured_content is not None:
        data["structuredContent"] = result.structured_content
    return data


def call_from_json(data: Mapping[str, Any]) -> CallResult:
    return CallResult(data["content"], data.get("structuredContent"), data["isError"])


def states_to_json(states: Sequence[ServerState]) -> list[Json]:
    """Return the states without what only the gateway itself needs."""
    return [{name: value for name, value in asdict(state).items() if name != "restarts"} for state in states]


def without_words(states: Sequence[ServerState]) -> list[ServerState]:
    """Return the states without what servers said, which is for people: it may be written for a model."""
    return [replace(state, error=without_server_output(state.error)) for state in states]


def states_from_json(data: Sequence[Mapping[str, Any]]) -> list[ServerState]:
    return [
        ServerState(
            **{**state, "transport": Transport(state["transport"]), "status": ServerStatus(state["status"])}
        )
        for state in data
    ]


def health_to_json(health: GatewayHealth) -> Json:
    """Add a `status`: `ok`, `degraded` (search without its model, or without a server) or `starting`."""
    absent = ServerStatus.FAILED, ServerStatus.SIGN_IN_NEEDED
    failed = [state.name for state in health.servers if state.status in absent]
    complete = health.semantic and not health.is_fallback and not failed
    status = "starting" if not health.ready else "ok" if complete else "degraded"
    return {"status": status, **asdict(health), "servers": states_to_json(health.servers)}


def health_from_json(data: Mapping[str, Any]) -> GatewayHealth:
    # A gateway of a later version may say more.
    known = {field.name for field in dataclass_fields(GatewayHealth)} - {"servers"}
    fields = {name: value for name, value in data.items() if name in known}
    return GatewayHealth(**fields, servers=tuple(states_from_json(data["servers"])))


def _call_facts(hit: LocalHit) -> Json:
    """Return what one needs to call a hit: its signature, its twins, and whether it is deprecated."""
    facts = {
        "signature": signature(hit.item),
        "also": list(hit.also),
        "deprecated": hit.deprecated,
        "paths": dict(hit.paths),
    }
    return {name: value for name, value in facts.items() if value}


def _hit_to_json(hit: LocalHit, *, explain: bool, schemas: bool) -> Json:
    data: Json = {
        "toolId": tool_id(hit.item.server, hit.item.name),
        "serverName": hit.item.server,
        "toolName": hit.item.name,
        "confidence": hit.confidence,
        "reason": hit.reason,
        "description": hit.item.description,
    }
    if hit.item.kind is not ItemKind.TOOL:
        data["kind"] = hit.item.kind.value
    if explain:
        data |= _call_facts(hit)
        data["parts"] = asdict(hit.parts)
        if hit.risk is not None:
            data["risk"] = hit.risk.to_json()
    return data | item_to_json(hit.item, schemas=True) if schemas else data


def _step_from_json(data: Mapping[str, Any]) -> LocalStep:
    hits, misses = (tuple(map(_hit_from_json, data.get(name, ()))) for name in ("results", "near_misses"))
    return LocalStep(data["query"], hits, data["good_match"], misses)


def _hit_from_json(data: Mapping[str, Any]) -> LocalHit:
    item = item_of_json({"kind": "tool", **data})
    risk = ToolRisk.from_json(data["risk"]) if data.get("risk") else None
    parts = _parts_from_json(data.get("parts") or {})
    also, deprecated = tuple(data.get("also", ())), data.get("deprecated", False)
    paths = data.get("paths", {})
    return LocalHit(
        item, data["confidence"], data["reason"], parts, risk=risk, also=also, deprecated=deprecated, paths=paths
    )


def _parts_from_json(data: Mapping[str, Any]) -> ScoreParts:
    matched = tuple(WordMatch(**match) for match in data.get("matched", ()))
    return ScoreParts(**{**data, "matched": matched})
