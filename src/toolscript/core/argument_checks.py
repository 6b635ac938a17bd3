"""Whether the arguments of a call fit the tool's schema, before they are sent; what does not is said in words.

A schema comes from a server: it may be wrong, large, or made to take for ever. What cannot be checked in bounded
time is not enforced, nor are remote references, formats, and patterns that `core.patterns` does not know; so
nothing is enforced either that asks of a part whether it does not fit.
"""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

from rapidfuzz import process

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, JsonObject, tool_id
from toolscript.core.patterns import matcher
from toolscript.core.signatures import signature
from toolscript.core.text import visible
from toolscript.core.tokens import size_of

# Details of the error: what is wrong, and the schema that is returned with it.
MISTAKES, INPUT_SCHEMA = "mistakes", "input_schema"
MAX_SCHEMA_BYTES = 6_000
MAX_MISTAKES = 5
# Keywords that one check looks at, and places in a schema.
MAX_STEPS, MAX_PLACES, MAX_DEPTH = 5_000, 10_000, 64
MAX_KEPT = 500
MAX_VALUE, MAX_NAME = 100, 60
# How alike a name that does not exist is to one that was meant.
LIKENESS = 70

# How many names a wrong one is compared with.
MAX_COMPARED = 200

# They lead to other documents, or to patterns that no budget bounds, or refuse what fits a part: that one of which
# not everything is enforced would fit too much.
_NOT_CHECKED = (
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
    "uniqueItems",
    "format",
    "not",
    "disallow",
    "if",
    "contains",
)
# In a class of characters these have a meaning of their own here, and none in JSON Schema.
_CLASS_SYNTAX = re.compile(r"&&|--|~~|\[[^\]]*\[")

_steps_left: ContextVar[int] = ContextVar("steps_left")


class _OutOfSteps(Exception): ...


def require_arguments(item: Item, arguments: JsonObject) -> None:
    """Raise InvalidRequest for arguments that a tool does not take, with its schema, if it is not too large."""
    mistakes = mistakes_in(arguments, item.input_schema)
    if not mistakes:
        return
    schema = {INPUT_SCHEMA: item.input_schema} if size_of(item.input_schema) <= MAX_SCHEMA_BYTES else {}
    raise InvalidRequest(
        f"wrong arguments for {tool_id(item.server, item.name)[:200]}: {'; '.join(mistakes)}",
        hint=f"it takes {signature(item)}",
        details={MISTAKES: mistakes, **schema},
    )


def mistakes_in(arguments: JsonObject, schema: JsonObject | None) -> list[str]:
    """Return what is wrong with the arguments, at most a few things; nothing where it cannot be told."""
    validator = _VALIDATORS.of(schema) if schema else None
    if validator is None:
        return []
    mistakes = dict[str, None]()
    token = _steps_left.set(MAX_STEPS)
    try:
        for error in validator.iter_errors(arguments):
            mistakes.update(dict.fromkeys(_in_words(error)))
            if len(mistakes) >= MAX_MISTAKES:
                break
    except Exception:  # noqa: BLE001 - whatever a schema does to the library, the server decides then
        return [*mistakes][:MAX_MISTAKES]
    finally:
        _steps_left.reset(token)
    return [*mistakes][:MAX_MISTAKES]


class _Validators:
    """The validators of the schemas in use, the last ones. A schema that is itself invalid has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the identity of a schema, which is kept with its validator and so stays its own.
        self._kept: OrderedDict[int, tuple[JsonObject, Any]] = OrderedDict()

    def of(self, schema: JsonObject) -> Any:
        with self._lock:
            kept = self._kept.get(id(schema))
            if kept is not None and kept[0] is schema:
                self._kept.move_to_end(id(schema))
                return kept[1]
        made = _validator(schema)
        with self._lock:
            self._kept[id(schema)] = (schema, made)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return made


_VALIDATORS = _Validators()


def _validator(schema: JsonObject) -> Any:
    """Return the validator of a schema; None for one that is invalid, too large or too deep."""
    import referencing
    from jsonschema import validators  # type: ignore[import-untyped]

    plain = _without_dialects(schema)
    if plain is None:
        return None
    dialect = validators.validator_for({"$schema": schema.get("$schema")}, default=validators.Draft202012Validator)
    token = _steps_left.set(MAX_STEPS)
    try:
        _bounded(dialect.__name__)(dialect.META_SCHEMA).validate(plain)
        return _bounded(dialect.__name__)(plain, registry=referencing.Registry())
    except Exception:  # noqa: BLE001 - a schema that the library cannot read is not enforced
        return None
    finally:
        _steps_left.reset(token)


def _without_dialects(schema: JsonObject) -> JsonObject | None:
    """Return a copy in one dialect: a part with another would be checked without our bounds."""
    places = 0

    def copy(value: object, depth: int) -> object:
        nonlocal places
        places += 1
        if places > MAX_PLACES or depth > MAX_DEPTH:
            raise _OutOfSteps
        if isinstance(value, Mapping):
            kept = {key: inner for key, inner in value.items() if key != "$schema" or not isinstance(inner, str)}
            return {key: copy(inner, depth + 1) for key, inner in kept.items()}
        return [copy(inner, depth + 1) for inner in value] if isinstance(value, list | tuple) else value

    try:
        plain = copy(schema, 0)
    except _OutOfSteps:
        return None
    return plain if isinstance(plain, Mapping) else None


@cache
def _bounded(dialect: str) -> Any:
    """Return the validator class of a dialect, in which every keyword counts, and patterns take linear time."""
    from jsonschema import validators

    base = getattr(validators, dialect)
    own: dict[str, Any] = {
        "type": _type_but_for_null(base.VALIDATORS["type"]),
        # Whether a second one fits cannot be told.
        "oneOf": base.VALIDATORS.get("anyOf"),
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    checks = {**base.VALIDATORS, **{name: own[name] for name in own if name in base.VALIDATORS}}
    counted = {name: _counted(check) for name, check in checks.items() if name not in _NOT_CHECKED}
    return validators.create(
        meta_schema=base.META_SCHEMA,
        validators=counted,
        type_checker=base.TYPE_CHECKER,
        id_of=base.ID_OF,
        applicable_validators=base._APPLICABLE_VALIDATORS,  # noqa: SLF001
    )


def _counted(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterator[Any]]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _steps_left.get()
        if left <= 0:
            raise _OutOfSteps
        _steps_left.set(left - 1)
        yield from check(validator, value, instance, schema) or ()

    return counted


def _type_but_for_null(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any]]:
    """Return a check that knows how OpenAPI allows null."""

    def typed(validator: Any, types: Any, instance: Any, schema: Any) -> Iterable[Any]:
        if instance is None and schema.get("nullable") is True:
            return ()
        return check(validator, types, instance, schema) or ()

    return typed


@lru_cache(maxsize=1_000)
def _matcher(pattern: str) -> Callable[[str], bool] | None:
    return None if _CLASS_SYNTAX.search(pattern) else matcher(pattern)


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    matches = _matcher(pattern)
    if isinstance(instance, str) and matches is not None and not matches(instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: JsonObject, instance: Any, _schema: Any) -> Iterator[Any]:
    for pattern, subschema in patterns.items() if isinstance(instance, dict) else ():
        matches = _matcher(pattern)
        for name in filter(matches, instance) if matches else ():
            yield from validator.descend(instance[name], subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: JsonObject) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(instance, dict):
        return
    extras = _extras(instance, schema)
    if isinstance(allowed, Mapping):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif allowed is False and extras:
        yield ValidationError("unknown names")


def _extras(instance: Mapping[str, Any], schema: JsonObject) -> list[str]:
    """Return the names that neither the properties nor the patterns have; none if it cannot be told."""
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    known = properties if isinstance(properties, Mapping) else {}
    matchers = [_matcher(pattern) for pattern in patterns] if isinstance(patterns, Mapping) else []
    if None in matchers:
        return []
    return [name for name in instance if name not in known and not any(match(name) for match in matchers if match)]


def _in_words(error: Any) -> Iterator[str]:
    """Yield what an error says, without the values that were given: they may be large, and secret."""
    place, keyword, rule = _place(error.absolute_path), error.validator, error.validator_value
    if keyword == "required":
        missing = [str(name) for name in rule if name not in error.instance]
        extras = _extras(error.instance, error.schema)
        yield from (
            f"{_inside(place, name)} is missing{_typo_of(name, extras)}" for name in missing[:MAX_MISTAKES]
        )
    elif keyword == "additionalProperties":
        known = [str(name) for name in error.schema.get("properties") or ()]
        extras = _extras(error.instance, error.schema)
        yield from (f"{_inside(place, name)} is unknown{_meant(name, known)}" for name in extras[:MAX_MISTAKES])
    elif keyword == "type":
        names = rule if isinstance(rule, list) else [rule]
        yield f"{place} must be {' or '.join(map(str, names))}, not {_type_of(error.instance)}"
    elif keyword in ("anyOf", "oneOf"):
        yield f"{place} fits none of its alternatives"
    elif keyword == "enum":
        yield f"{place} must be one of {_cut(', '.join(json.dumps(value, ensure_ascii=False) for value in rule))}"
    else:
        yield f"{place} must have {keyword} {_cut(json.dumps(rule, ensure_ascii=False, default=str))}"


def _meant(name: str, known: list[str]) -> str:
    nearest = _nearest(name, known) if len(name) <= MAX_NAME else ""
    return f": did you mean {_quoted(nearest)}?" if nearest else ""


def _typo_of(name: str, extras: list[str]) -> str:
    nearest = _nearest(name, [extra for extra in extras if len(extra) <= MAX_NAME])
    return f", and {_quoted(nearest)} is not its name" if nearest else ""


def _nearest(name: str, names: list[str]) -> str:
    nearest = process.extractOne(name, names[:MAX_COMPARED], score_cutoff=LIKENESS)
    return nearest[0] if nearest else ""


def _type_of(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    names: tuple[tuple[Any, str], ...] = ((str, "string"), (int | float, "number"), (Mapping, "object"))
    return next((name for kind, name in names if isinstance(value, kind)), "array")


def _place(path: Iterable[object]) -> str:
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return _quoted("".join(steps).removeprefix(".")) if steps else "the arguments"


def _inside(place: str, name: str) -> str:
    return _quoted(name) if place == "the arguments" else _quoted(f"{place.strip('`')}.{name}")


def _quoted(name: str) -> str:
    return f"`{_cut(' '.join(visible(name).split()))}`"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
