"""Values that break parsers, databases and encoders, for every operation; random requests rarely contain them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# As JSON text: Python cannot represent some of them.
HOSTILE_JSON = (
    '"a\\u0000b"',
    '"\\ud800"',
    '["\\ud800"]',
    '{"\\ud800": "\\u0000"}',
    "1e999",
    "NaN",
    "[-Infinity]",
    str(2**63),
    str(-(2**63) - 1),
    "1" + "0" * 400,
    "1" + "0" * 5_000,
    '{"a":' * 900 + "1" + "}" * 900,
    "[" * 20_000 + "]" * 20_000,
    '" "',
    "null",
)
NO_JSON = (
    b"",
    b"{",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"[" * 50_000,
    b"\0",
    b'"\xed\xa0\x80"',
    b"{}" + b" " * (65 << 10),
)
# As text in a URL.
HOSTILE_TEXT = (
    "a%00b",
    "%FF",
    "%ED%A0%80",
    "%20",
    "%0D%0Aa:b",
    "..",
    "%2e%2e%2f",
    "9" * 19,
    "9" * 5_000,
    "1e999",
    "inf",
    "%D9%A1",
    "",
)


@dataclass(frozen=True)
class Hostile:
    """One request, the statuses that are documented for it, and whether only administrators may send it."""

    method: str
    url: str
    documented: frozenset[int]
    as_admin: bool
    body: bytes | None = None
    content_type: str = "application/json"


def hostile_requests(openapi: Json, known: Mapping[str, str]) -> Iterator[Hostile]:
    """Yield requests for every operation. `known` has a value for each path parameter."""
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            documented = frozenset(int(status) for status in operation["responses"])
            named, as_admin = path.format_map(known), {"admin": []} in operation["security"][:1]
            for url in [named, *_urls(path, known, operation.get("parameters", []))]:
                yield Hostile(method.upper(), url, documented, as_admin)
            for body in _bodies(openapi, operation):
                yield Hostile(method.upper(), named, documented, as_admin, body)
            if "requestBody" in operation:
                for content_type in ("text/plain", "multipart/form-data", "application/json; charset=utf-16", "?"):
                    yield Hostile(method.upper(), named, documented, as_admin, b"{}", content_type)


def _urls(path: str, known: Mapping[str, str], parameters: list[Json]) -> Iterator[str]:
    for parameter in parameters:
        for text in HOSTILE_TEXT:
            if parameter["in"] == "query":
                yield f"{path.format_map(known)}?query=a&{parameter['name']}={text}"
            elif text not in ("", ".."):
                yield path.format_map({**known, parameter["name"]: text})


def _bodies(openapi: Json, operation: Json) -> Iterator[bytes]:
    if "requestBody" not in operation:
        return
    yield from NO_JSON
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    for alternative in schema.get("anyOf", [schema]):
        described = _resolved(openapi, alternative)
        if "properties" not in described:
            continue
        smallest = {
            name: _smallest(openapi, described["properties"][name]) for name in described.get("required", [])
        }
        for hostile in HOSTILE_JSON:
            yield hostile.encode()
            for name in [*described["properties"], "unheard_of"]:
                rest = "".join(
                    f", {json.dumps(key)}: {json.dumps(item)}" for key, item in smallest.items() if key != name
                )
                yield f'{{"{name}": {hostile}{rest}}}'.encode()


def _smallest(openapi: Json, schema: Json) -> object:
    """Return a minimal valid value."""
    kind: str = _resolved(openapi, schema)["type"]
    return {"string": "a", "array": [], "object": {}, "integer": 1, "number": 0.5, "boolean": True}[kind]


def _resolved(openapi: Json, schema: Json) -> Json:
    name = schema.get("$ref", "").rpartition("/")[2]
    result: Json = openapi["components"]["schemas"][name] if name else schema
    return result
