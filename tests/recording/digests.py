"""What is kept of an answer, and how two of them differ: no text, but a ranking and a digest of each part."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# What differs between two runs of the same code.
UNSTEADY = re.compile(
    r"\w+_(?:at|ms|seconds)|\w*[iI]d_of_request|request_id|timings|milliseconds|pid|url|search_id|version|index_version"
    r"|(?:next_)?cursor|at|since|last_\w+|startedAt|executionTimeMs|config_file"
)
# Ids, processes, ports, folders and times within texts.
UNIQUE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|test_[0-9a-f]{12}\w*|\\?\"pid\\?\": \d+"
    r"|127\.0\.0\.1:\d+|/(?:tmp|var)/[^\s\"',;)]+|\d+(?:\.\d+)? (?:ms|s|seconds)\b"
)
LISTS = ("results", "hits", "tools", "items", "documents", "skills", "sources", "prompts", "resources")
NAMES = ("tool_id", "toolId", "id", "document_id", "chunk_id", "name", "source_id")
DIGITS = 4
MAX_SHOWN = 12

Kept = dict[str, object]


@dataclass(frozen=True)
class Difference:
    request: str
    what: str

    def __str__(self) -> str:
        return f"{self.request}\n    {self.what}"


def kept(status: object, body: object) -> Kept:
    """Return what is recorded of an answer: status, ranking, fields and a digest of each part."""
    steady = _steady(body)
    parts = steady if isinstance(steady, Mapping) else {"": steady}
    return {
        "status": status,
        "ranking": _ranking(steady),
        "fields": _digest(sorted({*_fields(steady)})),
        "parts": {str(name): _digest(part) for name, part in parts.items()},
    }


def differences(recorded: Mapping[str, Kept], now: Mapping[str, Kept]) -> Iterator[Difference]:
    """Yield what differs, request by request: the first of status, ranking, parts and fields that does."""
    for request in recorded.keys() - now.keys():
        yield Difference(request, "is not asked any more")
    for request in now.keys() - recorded.keys():
        yield Difference(request, "was not recorded")
    for request in sorted(recorded.keys() & now.keys()):
        if what := _difference(recorded[request], now[request]):
            yield Difference(request, what)


def _difference(before: Kept, after: Kept) -> str:
    if before["status"] != after["status"]:
        return f"status {before['status']} -> {after['status']}"
    if before["ranking"] != after["ranking"]:
        return f"ranking {_shown(before['ranking'])} -> {_shown(after['ranking'])}"
    one, other = before["parts"], after["parts"]
    assert isinstance(one, Mapping)
    assert isinstance(other, Mapping)
    changes = [
        *(f"{name} is gone" for name in one if name not in other),
        *(f"{name} is new" for name in other if name not in one),
        *(f"{name} differs" for name in one if name in other and one[name] != other[name]),
    ]
    if before["fields"] != after["fields"]:
        changes.append("its fields differ")
    return ", ".join(changes)


def _shown(ranking: object) -> str:
    assert isinstance(ranking, Sequence)
    return f"[{', '.join(map(str, ranking[:MAX_SHOWN]))}{', ...' if len(ranking) > MAX_SHOWN else ''}]"


def _steady(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _steady(inner) for name, inner in value.items() if not UNSTEADY.fullmatch(str(name))}
    if isinstance(value, list):
        return [_steady(inner) for inner in value]
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, str):
        return UNIQUE.sub("(unique)", value)
    return value


def _ranking(body: object) -> list[str]:
    """Return the names of what the first list of the answer has, in its order."""
    if isinstance(body, list):
        return [name for item in body if (name := _name(item))]
    if isinstance(body, Mapping):
        found = next((body[key] for key in LISTS if isinstance(body.get(key), list)), None)
        return _ranking(found) if found is not None else []
    return []


def _name(item: object) -> str:
    if not isinstance(item, Mapping):
        return str(item) if isinstance(item, str) else ""
    own = next((str(item[key]) for key in NAMES if isinstance(item.get(key), str)), "")
    inner = next((inner for inner in item.values() if isinstance(inner, Mapping) and _name(inner)), None)
    return own or (_name(inner) if inner is not None else "")


def _fields(value: object, within: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield f"{within}.{name}"
            yield from _fields(inner, f"{within}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner, f"{within}[]")


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
