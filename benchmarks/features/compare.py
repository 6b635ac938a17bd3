"""Compares what a client sees through a gateway with what it sees directly, and names each difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.features.names import SHOWN, described, of_server
from benchmarks.features.steps import FIELDS, Json, Observed, Step

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# Of the protocol's current version alone, or the default of what is absent.
_ENVELOPE = ("resultType", "ttlMs", "cacheScope")
MAX_SHOWN = 120
UNEXPLAINED = ""

# By feature and a part of the difference: why it is one.
REASONS: Sequence[tuple[str, str, str]] = (
    ("capabilities", "tasks", "tasks are an extension that nothing requires; a call is answered when it is done"),
    ("capabilities", "subscribe", "updates of single resources are not handed on"),
    ("tools", "simulate-research-query", "works as a task alone, which the gateway does not offer its servers"),
    ("tools", "-async", "works as a task alone, which the gateway does not offer its servers"),
    ("tools", "execution", "says whether a tool works as a task, which the gateway does not offer"),
    ("roots", "asked", "the server asks for roots once in a process, which all clients of a gateway share"),
    ("errors", "Unknown", "a gateway checks the name of a tool before it asks the server"),
)


@dataclass(frozen=True)
class Finding:
    """One step of one client at one endpoint. Without a difference it is the same."""

    server: str
    endpoint: str
    client: str
    feature: str
    key: str
    difference: str = ""
    reason: str = ""

    @property
    def is_unexplained(self) -> bool:
        return bool(self.difference) and self.reason == UNEXPLAINED


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


def _finding(place: Place, feature: str, key: str, difference: str) -> Finding:
    reason = next(
        (why for of, part, why in REASONS if difference and of == feature and part in difference), UNEXPLAINED
    )
    return Finding(place.server, place.endpoint, place.client, feature, key, difference, reason)


def _capabilities(place: Place, own: Observed, seen: Observed) -> str:
    ours, theirs = own["capabilities: server"]["result"], seen["capabilities: server"]["result"] or {}
    told = [
        f"{name}.{flag}" if flag else name
        for name, flags in ours.items()
        for flag in ["", *(flag for flag, value in (flags or {}).items() if value)]
        # The joint endpoint has three tools, which never change.
        if not (place.is_joint and (name, flag) == ("tools", "listChanged"))
    ]
    absent = [name for name in told if not _has(theirs, *name.partition(".")[::2])]
    return f"absent: {', '.join(absent)}" if absent else ""


def _has(capabilities: Json, name: str, flag: str) -> bool:
    return name in capabilities and (not flag or bool((capabilities[name] or {}).get(flag)))


def _list(place: Place, step: Step, own: Observed, seen: Observed) -> str:
    field = FIELDS[step.method]
    mine = own[step.id].get("result")
    if mine is None:
        # A server without such a list: an empty one is the same.
        mine = {field: []}
    if place.is_joint and field == "tools":
        theirs = described(place.server, seen)
        mine = {field: [_shown(tool) for tool in mine[field]]}
    else:
        theirs = of_server(place.server, seen.get(step.id, {}).get("result") or {}, mine, field)
    return _difference(_by_name(mine[field]), _by_name(theirs[field]))


def _shown(tool: Json) -> Json:
    return {name: tool[name] for name in ("name", *SHOWN.values()) if name in tool}


def _by_name(entries: Sequence[Json]) -> Json:
    return {str(entry.get("uri") or entry.get("uriTemplate") or entry["name"]): entry for entry in entries}


def _outcome(step: Step, own: Json, theirs: Json) -> str:
    if "error" in own and "error" in theirs:
        same = own["error"]["code"] == theirs["error"]["code"]
        return "" if same else f"error {own['error']['code']} -> {theirs['error']['code']}"
    if "error" in own or "error" in theirs:
        # Some servers answer with an error of the protocol, others with a result that is one.
        return f"{_text(own)} -> {_text(theirs)}"
    if step.feature == "logging":
        return "" if bool(own.get("logs")) <= bool(theirs.get("logs")) else "no log message"
    if step.wait_for and step.wait_for not in theirs.get("changes", ()):
        return f"no {step.wait_for}"
    heard = _progress(own, theirs) or _asked(own, theirs)
    return heard or _difference(_plain(own["result"]), _plain(theirs["result"]))


def _progress(own: Json, theirs: Json) -> str:
    # The last one may come after the result, and is then not shown to the client, here or there.
    wanted, told = own.get("progress", [])[:-1], theirs.get("progress", [])
    return "" if told[: len(wanted)] == wanted else f"progress {wanted} -> {told}"


def _asked(own: Json, theirs: Json) -> str:
    wanted, told = ([method for asked in heard.get("asked", ()) for method in asked] for heard in (own, theirs))
    return "" if wanted == told else f"asked {wanted} -> {told}"


def _plain(result: Any) -> Any:
    if not isinstance(result, Mapping):
        return result
    kept = {name: value for name, value in result.items() if name not in _ENVELOPE}
    meta = {name: value for name, value in (kept.pop("_meta", None) or {}).items() if name != SERVER_INFO}
    if kept.get("isError") is False:
        del kept["isError"]
    return {**kept, **({"_meta": meta} if meta else {})}


def _difference(own: Any, theirs: Any, path: str = "") -> str:
    """Return where two values differ first, and how; empty if they do not."""
    if isinstance(own, Mapping) and isinstance(theirs, Mapping):
        for name in [*own, *(name for name in theirs if name not in own)]:
            if found := _difference(own.get(name), theirs.get(name), f"{path}.{name}".removeprefix(".")):
                return found
        return ""
    if isinstance(own, list) and isinstance(theirs, list) and len(own) == len(theirs):
        pairs = enumerate(zip(own, theirs, strict=True))
        return next(filter(None, (_difference(*pair, f"{path}[{number}]") for number, pair in pairs)), "")
    return "" if own == theirs else f"{path}: {_text(own)} -> {_text(theirs)}"


def _text(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
