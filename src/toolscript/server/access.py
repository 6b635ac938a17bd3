"""Plans of tenants in a file: `{"plans": {"free": {"max_top_k": 20, "requests_per_minute": 60}}}`."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from toolscript.errors import ConfigInvalid
from toolscript.model.tenancy import Plan

MAX_BYTES = 1024 * 1024
LARGEST_LIMIT = 2**53
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHAPE = 'write {"plans": {"free": {"max_top_k": 20}}}; a limit that is left out, or null, is none'


def read_plans(path: Path) -> Mapping[str, Plan]:
    """The plans by name, or everything that is wrong with the file."""
    found = _content(path)
    if not isinstance(found, dict) or set(found) != {"plans"} or not isinstance(found["plans"], dict):
        raise ConfigInvalid(f"{path}: is not an object with `plans` and nothing else", hint=_SHAPE)
    problems = [problem for name, given in found["plans"].items() for problem in _problems(name, given)]
    if problems:
        raise ConfigInvalid(f"{path}: {'; '.join(problems)}", hint=_SHAPE)
    return {name: _plan(name, given) for name, given in found["plans"].items()}


def _content(path: Path) -> object:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigInvalid(f"cannot read {path}: {error.strerror}", hint="is TOOLSCRIPT_PLANS right?") from None
    if len(data) > MAX_BYTES:
        raise ConfigInvalid(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint=_SHAPE)
    try:
        return json.loads(data, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(f"{path} is not JSON: {error}", hint=_SHAPE) from None


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Of two plans of one name, or two limits, nobody could say which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"`{twice}` is there twice")
    return found


def _problems(name: str, given: object) -> list[str]:
    if not _NAME.fullmatch(name):
        return [f"plan {name[:80]!r}: a name is 1 to 64 letters, digits and ._-, the first a letter or digit"]
    if not isinstance(given, dict):
        return [f"plan `{name}`: is not an object"]
    unknown = [f"plan `{name}`: `{field}` is not one of {', '.join(_FIELDS)}" for field in given.keys() - _FIELDS]
    wrong = [
        f"plan `{name}`: `{field}` {_FIELDS[field][1]}"
        for field, value in given.items()
        if field in _FIELDS and value is not None and not _FIELDS[field][0](value)
    ]
    return sorted(unknown) + wrong


def _plan(name: str, given: Mapping[str, object]) -> Plan:
    fields = given.get("metadata_fields")
    return Plan(
        name,
        max_top_k=cast("int | None", given.get("max_top_k")),
        metadata_fields=None if fields is None else frozenset(cast("list[str]", fields)),
        max_documents=cast("int | None", given.get("max_documents")),
        requests_per_minute=cast("int | None", given.get("requests_per_minute")),
    )


def _is_count(least: int) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_LIMIT

    return is_one


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "max_top_k": (_is_count(1), "is not a whole number of at least 1"),
    "metadata_fields": (_are_names, "is not a list of names of fields"),
    "max_documents": (_is_count(0), "is not a whole number of at least 0"),
    "requests_per_minute": (_is_count(1), "is not a whole number of at least 1"),
}
