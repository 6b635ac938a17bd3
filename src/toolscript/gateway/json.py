"""JSON conversion of the gateway's values, for HTTP and `--json`; MCP returns a part of it.

Searches and calls have the field names of their source document, lists under `/api/v1` those of the service.
Plain schemas and not Pydantic's, because a command that calls a running gateway must start at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any

from toolscript.client.resource import PREFIX
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
from toolscript.core.retrieval.query import SearchType
from toolscript.core.signatures import signature
from toolscript.gateway.model import (
    Absence,
    AbsenceReason,
    GatewayHealth,
    LocalAnswer,
    LocalHit,
    LocalStep,
    ScoreParts,
    WordMatch,
)
from toolscript.gateway.rules import Basis, Risk, ToolRisk

Json = dict[str, Any]

TOOLS_PATH, SERVERS_PATH = f"{PREFIX}/tools", f"{PREFIX}/servers"
ACTIVITY_PATH, REVIEWS_PATH = f"{PREFIX}/activity", f"{PREFIX}/reviews"
# So many digests one decision names.
MAX_DECIDED = 1_000

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
ABSENCE = object_of(
    {
        "about": STRING,
        "reason": {"type": "string", "enum": [*AbsenceReason]},
        "message": STRING,
        "toolId": STRING,
        "confidence": NUMBER,
        "parts": ANY_OBJECT,
        "nearest": list_of(STRING),
    },
    *("about", "reason", "message"),
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
        "why_not": ABSENCE,
        "search_type": STRING,
        "index_version": STRING,
        "weights_version": STRING,
        "took_ms": NUMBER,
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


def server_shown(server: ServerState) -> Json:
    (data,) = states_to_json([server])
    absent = {name: data[name] or None for name in ("error", "protocol", "version")}
    return {"name": server.name, "state": data.pop("status"), **data, **absent}


def server_of_json(data: Mapping[str, Any]) -> ServerState:
    known = {name: value for name, value in data.items() if value is not None and name != "state"}
    return next(iter(states_from_json([{**known, "status": data["state"]}])))


def answer_to_json(answer: LocalAnswer, *, explain: bool = False, schemas: bool = False) -> Json:
    """`explain`: also what one needs to call a hit, what calling it may do, and what ran."""
    shown = partial(_hit_to_json, explain=explain, schemas=schemas)
    data: Json = {
        "query": answer.query,
        "results": [shown(hit) for hit in answer.hits],
        "totalResults": answer.total,
        "threshold": answer.threshold,
        "semantic": answer.semantic,
        "good_match": answer.good_match,
    }
    data |= {name: value for name, value in _remarks(answer).items() if value}
    if explain and answer.rules:
        data["rules"] = list(answer.rules)
    if answer.steps:
        data["steps"] = _steps(answer, shown)
    if answer.near_misses:
        data["near_misses"] = [shown(hit) for hit in answer.near_misses]
    return data | _what_ran(answer) if explain else data


def _remarks(answer: LocalAnswer) -> Json:
    return {
        "model": answer.model,
        "unmatched_words": list(answer.unmatched),
        "hint": answer.hint,
        "read_as": answer.read_as,
        "why_not": _absence_to_json(answer.absence) if answer.absence else None,
    }


def _what_ran(answer: LocalAnswer) -> Json:
    took = answer.milliseconds.get("total")
    ran = {
        "search_type": answer.search_type_used.value,
        "index_version": answer.index_version,
        "weights_version": answer.weights_version,
        "took_ms": None if took is None else round(took, 3),
    }
    return {name: value for name, value in ran.items() if value is not None}


def _absence_to_json(absence: Absence) -> Json:
    data: Json = {"about": absence.about, "reason": absence.reason.value, "message": absence.message}
    if absence.tool:
        data["toolId"] = absence.tool
    if absence.confidence is not None:
        data |= {"confidence": absence.confidence, "parts": asdict(absence.parts)}
    if absence.nearest:
        data["nearest"] = list(absence.nearest)
    return data


def _absence_from_json(data: Mapping[str, Any]) -> Absence:
    return Absence(
        data["about"],
        AbsenceReason(data["reason"]),
        data["message"],
        tool=data.get("toolId", ""),
        confidence=data.get("confidence"),
        parts=_parts_from_json(data.get("parts") or {}),
        nearest=tuple(data.get("nearest", ())),
    )


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
        absence=_absence_from_json(data["why_not"]) if "why_not" in data else None,
        search_type=SearchType(data.get("search_type", SearchType.HYBRID)),
        index_version=data.get("index_version"),
        weights_version=data.get("weights_version"),
        milliseconds={"total": data["took_ms"]} if "took_ms" in data else {},
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
    """Return the item that `tool_shown` shows."""
    return item_from_json({**{name: data[name] for name in data.keys() - {"id"}}, "type": data["kind"]})


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
    item = item_from_json(
        {
            "type": data.get("kind", "tool"),
            "server": data["serverName"],
            "name": data["toolName"],
            "description": data["description"],
            "input_schema": data.get("inputSchema"),
            "output_schema": data.get("outputSchema"),
            "annotations": data.get("annotations"),
        }
    )
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
