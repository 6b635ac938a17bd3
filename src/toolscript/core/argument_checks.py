"""Whether the arguments of a call fit the tool's schema, before they are sent; what does not is said in words.

A schema comes from a server: it may be wrong, large, or made to take for ever. What cannot be checked in bounded
time is not enforced, nor are remote references, formats, and patterns that `core.patterns` does not know; so
nothing is enforced either that asks of a part whether it does not fit. The patterns of one schema have a budget,
its check a limit of time, and all checks threads of their own: nobody else waits for them.
"""

import asyncio
import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from rapidfuzz import process

from toolscript.core.daemon_threads import DaemonThreads
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, JsonObject, tool_id
from toolscript.core.patterns import cost_of, matcher
from toolscript.core.signatures import signature
from toolscript.core.text import visible
from toolscript.core.tokens import size_of

# Details of the error: what is wrong, and the schema that is returned with it.
MISTAKES, INPUT_SCHEMA = "mistakes", "input_schema"
MAX_SCHEMA_BYTES = 6_000
MAX_MISTAKES = 5
# Keywords that one check looks at, and places in a schema.
MAX_STEPS, MAX_PLACES, MAX_DEPTH = 5_000, 2_000, 64
MAX_KEPT = 1_000
# Patterns in one schema, the letters of one, and what all of them cost to compile; see `core.patterns`. Those of a
# schema with more are not enforced. The last is also what the compiled ones that are kept may cost.
MAX_PATTERNS, MAX_PATTERN_LETTERS, MAX_PATTERNS_COST = 50, 200, 2_000
MAX_KEPT_COST = 10_000
# How long a call waits for its check, until it is made unchecked, and what a check may take of a processor, until
# its schema is not enforced any more.
CHECK_SECONDS, MAX_PROCESSOR_SECONDS = 1.0, 0.1
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

# Checks of schemas that were quick before do not wait for the others.
_QUICK, _OTHERS = DaemonThreads("quick argument checks", 1), DaemonThreads("argument checks", 1, rests=3.0)
QUICK_SECONDS = 0.005


@dataclass
class _Budget:
    """What a check may still do: on its thread, so the time is that of the thread."""

    steps: int = MAX_STEPS
    until: float = 0.0
    has_patterns: bool = True

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0 or time.thread_time() > self.until:
            raise _OutOfSteps


_budget: ContextVar[_Budget] = ContextVar("budget")


class _OutOfSteps(Exception): ...


async def require_arguments_in_time(
    item: Item, arguments: JsonObject, *, seconds: float = CHECK_SECONDS, threads: DaemonThreads | None = None
) -> None:
    """Do as `require_arguments`, on a thread for such checks; what takes too long to check is not refused."""
    is_quick = item.input_schema is None or _VALIDATORS.is_quick(item.input_schema)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (threads or (_QUICK if is_quick else _OTHERS)).run(partial(require_arguments, item, arguments))


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
    _load()
    known = _VALIDATORS.of(schema) if schema else None
    if known is None or known.validator is None:
        return []
    until = time.thread_time() + MAX_PROCESSOR_SECONDS
    mistakes, budget = dict[str, None](), _Budget(until=until, has_patterns=known.has_patterns)
    token = _budget.set(budget)
    try:
        for error in known.validator.iter_errors(arguments):
            budget.spend()
            mistakes.update(dict.fromkeys(_in_words(error)))
            if len(mistakes) >= MAX_MISTAKES:
                break
    except Exception:  # noqa: BLE001, S110 - whatever a schema does to the library, the server decides then
        pass
    finally:
        _budget.reset(token)
        _VALIDATORS.took(schema or {}, time.thread_time() - until + MAX_PROCESSOR_SECONDS)
    return [*mistakes][:MAX_MISTAKES]


@cache
def _load() -> None:
    """Import what the first check needs: that is no fault of its schema."""
    import_module("referencing")
    import_module("jsonschema.validators")
    _bounded("Draft202012Validator")


@dataclass(frozen=True)
class _Known:
    """The validator of a schema, if it has one, whether its patterns are enforced, and whether it is quick."""

    validator: Any = None
    has_patterns: bool = False
    is_quick: bool = False


class _Validators:
    """The validators of the schemas in use, the last ones. A schema that is itself invalid has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the identity of a schema, which is kept with its validator and so stays its own.
        self._kept: OrderedDict[int, tuple[JsonObject, _Known]] = OrderedDict()

    def of(self, schema: JsonObject) -> _Known:
        with self._lock:
            kept = self._kept.get(id(schema))
            if kept is not None and kept[0] is schema:
                self._kept.move_to_end(id(schema))
                return kept[1]
        made = _known(schema)
        self._keep(schema, made)
        return made

    def is_quick(self, schema: JsonObject) -> bool:
        kept = self._kept.get(id(schema))
        return kept is not None and kept[0] is schema and kept[1].is_quick

    def took(self, schema: JsonObject, seconds: float) -> None:
        """Note how long a check took. A schema of which one takes too long is enforced no more."""
        known = self.of(schema)
        if seconds > MAX_PROCESSOR_SECONDS:
            self._keep(schema, _Known(is_quick=True))
        elif known.is_quick is not (seconds < QUICK_SECONDS):
            self._keep(schema, replace(known, is_quick=not known.is_quick))

    def _keep(self, schema: JsonObject, made: _Known) -> None:
        with self._lock:
            self._kept[id(schema)] = (schema, made)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)


_VALIDATORS = _Validators()


def _known(schema: JsonObject) -> _Known:
    """Return the validator of a schema; none for one that is invalid, too large or too deep."""
    import referencing
    from jsonschema import validators  # type: ignore[import-untyped]

    plain = _without_dialects(schema)
    if plain is None:
        return _Known(is_quick=True)
    dialect = validators.validator_for({"$schema": schema.get("$schema")}, default=validators.Draft202012Validator)
    token = _budget.set(_Budget(until=time.thread_time() + 3 * MAX_PROCESSOR_SECONDS))
    try:
        _bounded(dialect.__name__)(dialect.META_SCHEMA).validate(plain)
        validator = _bounded(dialect.__name__)(plain, registry=referencing.Registry())
        return _Known(validator, _are_affordable(_patterns_in(plain)))
    except Exception:  # noqa: BLE001 - a schema that the library cannot read is not enforced
        return _Known(is_quick=True)
    finally:
        _budget.reset(token)


def _patterns_in(value: object) -> Iterator[str]:
    """Yield what may be a pattern anywhere in a schema."""
    if isinstance(value, Mapping):
        pattern, named = value.get("pattern"), value.get("patternProperties")
        yield from [pattern] if isinstance(pattern, str) else []
        yield from named if isinstance(named, Mapping) else ()
        for inner in value.values():
            yield from _patterns_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns_in(inner)


def _are_affordable(patterns: Iterable[str]) -> bool:
    left = MAX_PATTERNS_COST
    for number, pattern in enumerate(dict.fromkeys(patterns)):
        left -= cost_of(pattern) if len(pattern) <= MAX_PATTERN_LETTERS else 0
        if left < 0 or number >= MAX_PATTERNS:
            return False
    return True


def _without_dialects(schema: JsonObject) -> JsonObject | None:
    """Return the schema in one dialect: a part with another would be checked without our bounds."""
    places, inner_dialects = 0, 0

    def look(value: object, depth: int) -> None:
        nonlocal places, inner_dialects
        places += 1
        if places > MAX_PLACES or depth > MAX_DEPTH:
            raise _OutOfSteps
        if isinstance(value, Mapping):
            inner_dialects += depth > 0 and isinstance(value.get("$schema"), str)
            for inner in value.values():
                look(inner, depth + 1)
        for inner in value if isinstance(value, list | tuple) else ():
            look(inner, depth + 1)

    try:
        look(schema, 0)
    except _OutOfSteps:
        return None
    return _own_dialect_only(schema) if inner_dialects else _without_dialect(schema)


def _without_dialect(schema: JsonObject) -> JsonObject:
    return {key: inner for key, inner in schema.items() if key != "$schema" or not isinstance(inner, str)}


def _own_dialect_only(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _own_dialect_only(inner) for key, inner in _without_dialect(value).items()}
    return [*map(_own_dialect_only, value)] if isinstance(value, list | tuple) else value


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
        _budget.get().spend()
        yield from check(validator, value, instance, schema) or ()

    return counted


def _type_but_for_null(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any]]:
    """Return a check that knows how OpenAPI allows null."""

    def typed(validator: Any, types: Any, instance: Any, schema: Any) -> Iterable[Any]:
        if instance is None and schema.get("nullable") is True:
            return ()
        return check(validator, types, instance, schema) or ()

    return typed


class _Matchers:
    """The last patterns that were compiled, as long as all of them do not cost too much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Callable[[str], bool] | None, int]] = OrderedDict()
        self._cost = 0

    def of(self, pattern: str) -> Callable[[str], bool] | None:
        budget = _budget.get()
        budget.spend()
        if not budget.has_patterns or len(pattern) > MAX_PATTERN_LETTERS or _CLASS_SYNTAX.search(pattern):
            return None
        with self._lock:
            if pattern in self._kept:
                self._kept.move_to_end(pattern)
                return self._kept[pattern][0]
        made = matcher(pattern)
        cost = cost_of(pattern) if made else 0
        with self._lock:
            if pattern not in self._kept:
                self._kept[pattern] = (made, cost)
                self._cost += cost
            while self._cost > MAX_KEPT_COST or len(self._kept) > MAX_KEPT:
                self._cost -= self._kept.popitem(last=False)[1][1]
        return made


_MATCHERS = _Matchers()


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    matches = _MATCHERS.of(pattern)
    if isinstance(instance, str) and matches is not None and not matches(instance):
        yield ValidationError("does not match")


def _pattern_properties(validator: Any, patterns: JsonObject, instance: Any, _schema: Any) -> Iterator[Any]:
    for pattern, subschema in patterns.items() if isinstance(instance, dict) else ():
        matches = _MATCHERS.of(pattern)
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
    matchers = [_MATCHERS.of(pattern) for pattern in patterns] if isinstance(patterns, Mapping) else []
    if None in matchers:
        return []
    budget, extras = _budget.get(), list[str]()
    for name in instance:
        budget.spend(0)
        if name not in known and not any(match(name) for match in matchers if match):
            extras.append(name)
    return extras


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
