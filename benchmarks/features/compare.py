"""Compares what a client sees through a gateway with what it sees directly, and names each difference."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.features.names import SHOWN, described, of_server
from benchmarks.features.steps import FIELDS, Json, Observed, Step

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# Of the protocol's current version alone, or the default of what is absent.
_ENVELOPE = ("resultType", "ttlMs", "cacheScope")
MAX_SHOWN = 120
# What differs each time: when a result was made, and the name of what a step makes.
_EACH_TIME = re.compile(r"\d{1,2}:\d\d:\d\d( [AP]M)?|made-\d+")

# By feature and a part of the difference: why it is one.
REASONS: Sequence[tuple[str, str, str]] = (
    ("capabilities", "tasks", "tasks are an extension that nothing requires; a call is answered when it is done"),
    ("tools", "execution", "says whether a tool works as a task; clients of 2026-07-28 have no such field"),
    ("tools", ".title", "`describe_tool` shows what a model needs to call a tool"),
    ("calls", "thoughtHistoryLength", "the server counts in its process, which all clients of a gateway share"),
    ("roots", "asked", "the server asks for roots once in its process, which all clients of a gateway share"),
    ("errors", "an error of the protocol", "at `/mcp` a failed call is a result that the model reads"),
    ("errors", "wrong arguments for", "arguments are checked before a call; the answer says what the tool takes"),
    ("prompts", "an error of the protocol", "the error is the same; only its code differs"),
    ("elicitation", "message", "the person who is asked sees which server asks"),
)


@dataclass(frozen=True)
class Difference:
    """Where a client sees another thing through a gateway, and why, if that is known."""

    text: str
    reason: str = ""


@dataclass(frozen=True)
class Finding:
    """One step of one client at one endpoint. Without differences it is the same."""

    server: str
    endpoint: str
    client: str
    feature: str
    key: str
    differences: tuple[Difference, ...] = ()

    @property
    def is_same(self) -> bool:
        return not self.differences

    @property
    def unexplained(self) -> tuple[Difference, ...]:
        return tuple(difference for difference in self.differences if not difference.reason)


@dataclass(frozen=True)
class Place:
    """Where a client looked: at an endpoint, through which a server is seen."""

    server: str
    endpoint: str
    client: str
    is_joint: bool


def compare(place: Place, steps: Sequence[Step], own: Observed, seen: Observed) -> Iterator[Finding]:
    """Yield a finding for each step. `seen` has the steps under the keys of this server."""
    if "capabilities: server" in own:
        yield _finding(place, "capabilities", "", _capabilities(place, own, seen))
    for step in steps:
        if step.id not in own:
            continue
        if step.method in FIELDS:
            yield _finding(place, step.feature, "list", _list(place, step, own, seen))
        else:
            theirs = seen.get(keyed(place.server, step).id, {"error": {"code": "not asked", "message": ""}})
            yield _finding(place, step.feature, step.key, _outcome(step, own[step.id], theirs))


def keyed(server: str, step: Step) -> Step:
    """Return the step under a key that no step of another server has."""
    return Step(step.feature, f"{server}/{step.key}", step.method, step.params, step.cancel_after, step.wait_for)


def _finding(place: Place, feature: str, key: str, texts: Iterable[str]) -> Finding:
    differences = tuple(Difference(text, _reason(feature, text)) for text in texts)
    return Finding(place.server, place.endpoint, place.client, feature, key, differences)


def _reason(feature: str, text: str) -> str:
    return next((why for of, part, why in REASONS if of == feature and part in text), "")


def _capabilities(place: Place, own: Observed, seen: Observed) -> Iterator[str]:
    ours, theirs = own["capabilities: server"]["result"], seen["capabilities: server"]["result"] or {}
    for name, flags in ours.items():
        if not _has(theirs, name, ""):
            yield f"{name}: absent"
            continue
        for flag in (flag for flag, value in (flags or {}).items() if value):
            # The joint endpoint has tools that never change.
            if not _has(theirs, name, flag) and not (place.is_joint and (name, flag) == ("tools", "listChanged")):
                yield f"{name}.{flag}: absent"


def _has(capabilities: Json, name: str, flag: str) -> bool:
    return name in capabilities and (not flag or bool((capabilities[name] or {}).get(flag)))


def _list(place: Place, step: Step, own: Observed, seen: Observed) -> Iterator[str]:
    field = FIELDS[step.method]
    # For a server without such a list, an empty one is the same.
    mine: Json = own[step.id].get("result") or {field: []}
    if place.is_joint and field == "tools":
        theirs = described(place.server, seen)
        mine = {field: [_shown(tool) for tool in mine[field]]}
    else:
        theirs = of_server(place.server, seen.get(step.id, {}).get("result") or {}, mine, field)
    yield from _differences(_by_name(mine[field]), _by_name(theirs[field]))


def _shown(tool: Json) -> Json:
    return {name: tool[name] for name in ("name", *SHOWN.values()) if name in tool}


def _by_name(entries: Sequence[Json]) -> Json:
    return {str(entry.get("uri") or entry.get("uriTemplate") or entry["name"]): entry for entry in entries}


def _outcome(step: Step, own: Json, theirs: Json) -> Iterator[str]:
    if "error" in own and "error" in theirs:
        if own["error"]["code"] != theirs["error"]["code"]:
            yield f"code: {own['error']['code']} -> {theirs['error']['code']}"
    elif "error" in own or "error" in theirs:
        yield f"{_kind(own)} -> {_kind(theirs)}"
    elif step.feature == "logging":
        if own.get("logs") and not theirs.get("logs"):
            yield "no log message"
    else:
        if step.wait_for and step.wait_for not in theirs.get("changes", ()):
            yield f"no {step.wait_for}"
        yield from (*_progress(own, theirs), *_asked(own, theirs))
        yield from _differences(_plain(own["result"]), _plain(theirs["result"]))


def _kind(outcome: Json) -> str:
    if "error" in outcome:
        return f"an error of the protocol: {_text(outcome['error'])}"
    failed = "a result that is an error" if outcome["result"].get("isError") else "a result"
    return f"{failed}: {_text(_plain(outcome['result']))}"


def _progress(own: Json, theirs: Json) -> Iterator[str]:
    # The last one may come after the result, and is then not shown to the client, here or there.
    wanted, told = own.get("progress", [])[:-1], theirs.get("progress", [])
    if told[: len(wanted)] != wanted:
        yield f"progress: {wanted} -> {told}"


def _asked(own: Json, theirs: Json) -> Iterator[str]:
    wanted, told = ([method for asked in heard.get("asked", ()) for method in asked] for heard in (own, theirs))
    if wanted != told:
        yield f"asked: {wanted} -> {told}"


def _plain(result: Any) -> Any:
    if not isinstance(result, Mapping):
        return result
    kept = {name: value for name, value in result.items() if name not in _ENVELOPE}
    meta = {name: value for name, value in (kept.pop("_meta", None) or {}).items() if name != SERVER_INFO}
    if kept.get("isError") is False:
        del kept["isError"]
    return {**kept, **({"_meta": meta} if meta else {})}


def _differences(own: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield where two values differ, and how."""
    if isinstance(own, str) and isinstance(theirs, str):
        own, theirs = _EACH_TIME.sub("*", own), _EACH_TIME.sub("*", theirs)
        if own.count("\n") == theirs.count("\n") > 0:
            own, theirs = own.split("\n"), theirs.split("\n")
    if isinstance(own, Mapping) and isinstance(theirs, Mapping):
        for name in [*own, *(name for name in theirs if name not in own)]:
            yield from _differences(own.get(name), theirs.get(name), f"{path}.{name}".removeprefix("."))
    elif isinstance(own, list) and isinstance(theirs, list) and len(own) == len(theirs):
        for number, pair in enumerate(zip(own, theirs, strict=True)):
            yield from _differences(*pair, f"{path}[{number}]")
    elif own != theirs:
        yield f"{path}: {_text(own)} -> {_text(theirs)}"


def _text(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
