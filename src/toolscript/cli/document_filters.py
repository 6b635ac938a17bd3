"""Filters as they are written on a command line: `year>=2020`, `tags in law,sea`, `draft exists`, or JSON."""

import json
import re
from collections.abc import Sequence

from toolscript.errors import InvalidRequest

KINDS = ("must", "should", "must_not")
HINT = (
    "write field op value, as in 'year>=2020', 'lang=en', 'title~whale', 'tags in law,sea', 'draft exists', or "
    '{"field": "year", "op": "gte", "value": 2020}, or all of {"must": [...], "should": [...], "must_not": [...]}'
)
_SIGNS = {"<=": "lte", ">=": "gte", "!=": "ne", "==": "eq", "=": "eq", "<": "lt", ">": "gt", "~": "contains"}
_COMPARED = re.compile(r"\s*(?P<field>[^\s<>=!~]+)\s*(?P<sign><=|>=|!=|==|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)
_NAMED = re.compile(
    r"\s*(?P<field>\S+)\s+(?P<op>(?:not\s+)?(?:in|exists)|contains|eq|ne|lte?|gte?|nin)(?:\s+(?P<value>.*?))?\s*",
    re.DOTALL,
)

Json = dict[str, object]


def filters_of(texts: Sequence[str]) -> Json | None:
    """All of them have to hold."""
    gathered: dict[str, list[object]] = {kind: [] for kind in KINDS}
    for text in texts:
        for kind, conditions in _read(text).items():
            gathered[kind] += conditions
    return {kind: conditions for kind, conditions in gathered.items() if conditions} or None


def _read(text: str) -> dict[str, list[object]]:
    if text.lstrip().startswith("{"):
        return _from_json(text)
    if (compared := _COMPARED.fullmatch(text)) and compared["value"]:
        value = _value(compared["value"])
        return {"must": [{"field": compared["field"], "op": _SIGNS[compared["sign"]], "value": value}]}
    if named := _NAMED.fullmatch(text):
        return _by_name(named["field"], " ".join(named["op"].split()), named["value"] or "", text)
    raise _refused(text)


def _by_name(field: str, op: str, value: str, text: str) -> dict[str, list[object]]:
    if op.endswith("exists"):
        if value:
            raise _refused(text)
        return {"must": [{"field": field, "op": "exists", "value": op == "exists"}]}
    if not value:
        raise _refused(text)
    many = op in ("in", "not in", "nin")
    condition = {
        "field": field,
        "op": "nin" if op == "not in" else op,
        "value": _values(value) if many else _value(value),
    }
    return {"must": [condition]}


def _from_json(text: str) -> dict[str, list[object]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _refused(text) from None
    if "field" in data:
        return {"must": [data]}
    if not data.keys() <= set(KINDS) or not all(isinstance(one, list) for one in data.values()):
        raise _refused(text)
    return data  # type: ignore[no-any-return]


def _values(text: str) -> list[object]:
    """A list of JSON, or values with commas between them."""
    if text.startswith("["):
        listed = _value(text)
        return listed if isinstance(listed, list) else [listed]
    return [_value(one.strip()) for one in text.split(",") if one.strip()]


def _value(text: str) -> object:
    """A number, true, false or a text in quotes, as JSON has them; anything else is a text as it stands."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _refused(text: str) -> InvalidRequest:
    return InvalidRequest(f"{text[:80]!r} is no filter", hint=HINT)
