"""Filters over metadata: what they may say, and what they mean.

`filterable` is what of a document's metadata can be filtered by. Both the evaluator here and every engine work on
it, so that a filter means the same everywhere:
- objects within objects are named by their path, `author.name`;
- a field has values: texts, numbers and truths; a list has several, null and an empty list have none;
- whatever else a list holds (a list, an object) cannot be filtered by;
- a text that is a date, or a date and a time (ISO 8601), is a moment too.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from toolscript.errors import InvalidRequest
from toolscript.model.items import JsonObject

MOST_CONDITIONS = 50
MOST_VALUES = 100
MOST_FIELD = 200
MOST_VALUE = 1_000

Value = str | float | bool
# The values of each field.
Filterable = Mapping[str, tuple[Value, ...]]


class Op(StrEnum):
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LTE = "lte"
    GT = "gt"
    GTE = "gte"
    CONTAINS = "contains"
    IN = "in"
    NIN = "nin"
    EXISTS = "exists"


ORDERED = frozenset({Op.LT, Op.LTE, Op.GT, Op.GTE})
OF_MANY = frozenset({Op.IN, Op.NIN})


@dataclass(frozen=True)
class FieldCondition:
    """`value` is one value; several for `in` and `nin`; true or false for `exists`."""

    field: str
    op: Op
    values: tuple[Value, ...]

    @classmethod
    def of(cls, field: str, op: str, value: object) -> "FieldCondition":
        """As a caller says it."""
        if op not in set(Op):
            raise _problem(field, f"op {op[:20]!r} is none of {', '.join(Op)}")
        return cls(field, Op(op), _values(field, Op(op), value))

    def __post_init__(self) -> None:
        if not 0 < len(self.field) <= MOST_FIELD:
            raise _problem(self.field, f"a field's name has 1 to {MOST_FIELD} characters")
        if self.op in ORDERED and moment_or_number(self.values[0]) is None:
            raise _problem(self.field, f"{self.op} compares numbers, and dates like 2026-01-31T12:00:00Z")


@dataclass(frozen=True)
class Filters:
    """All of `must` hold, one of `should` if there are any, none of `must_not`."""

    must: tuple[FieldCondition, ...] = ()
    should: tuple[FieldCondition, ...] = ()
    must_not: tuple[FieldCondition, ...] = ()

    def __post_init__(self) -> None:
        if len(self.conditions) > MOST_CONDITIONS:
            raise InvalidRequest(
                f"filters have at most {MOST_CONDITIONS} conditions", details={"field": "filters"}
            )

    def __bool__(self) -> bool:
        return bool(self.conditions)

    @property
    def conditions(self) -> tuple[FieldCondition, ...]:
        return self.must + self.should + self.must_not


NO_FILTERS = Filters()


@dataclass(frozen=True)
class Metadata:
    """A document's metadata as filters see it; `moments` are those of the texts that are dates."""

    values: Filterable
    moments: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


def filterable(metadata: JsonObject) -> Metadata:
    gathered: defaultdict[str, list[Value]] = defaultdict(list)
    for name, value in _leaves(metadata):
        gathered[name].append(value)
    values = {name: tuple(listed) for name, listed in gathered.items()}
    moments = {name: tuple(_moments(listed)) for name, listed in values.items()}
    return Metadata(values, {name: found for name, found in moments.items() if found})


def moment_or_number(value: Value) -> float | None:
    """What `lt` and its like compare: a number, or the seconds of a moment."""
    if isinstance(value, bool):
        return None
    return moment(value) if isinstance(value, str) else float(value)


def moment(text: str) -> float | None:
    """A date, or a date and a time; without a zone it is UTC."""
    if not 10 <= len(text) <= 40 or text[4:5] != "-" or text[7:8] != "-":
        return None
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _leaves(value: Mapping[str, object], path: str = "") -> Iterator[tuple[str, Value]]:
    for key, inner in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(inner, Mapping):
            yield from _leaves(inner, name)
        else:
            listed = inner if isinstance(inner, Sequence) and not isinstance(inner, str) else (inner,)
            yield from ((name, plain) for one in listed if (plain := _plain(one)) is not None)


def _plain(value: object) -> Value | None:
    if isinstance(value, (str, bool)):
        return value
    return float(value) if isinstance(value, (int, float)) else None


def _moments(values: Sequence[Value]) -> Iterator[float]:
    for value in values:
        if isinstance(value, str) and (found := moment(value)) is not None:
            yield found


def _values(field_name: str, op: Op, value: object) -> tuple[Value, ...]:
    if op is Op.EXISTS:
        if value not in (None, True, False):
            raise _problem(field_name, "exists takes true or false")
        return (value is not False,)
    if op in OF_MANY and (not isinstance(value, Sequence) or isinstance(value, str)):
        raise _problem(field_name, f"{op} takes a list")
    listed = list(value) if op in OF_MANY and isinstance(value, Sequence) else [value]
    if len(listed) > MOST_VALUES:
        raise _problem(field_name, f"{op} takes at most {MOST_VALUES} values")
    return tuple(_one_value(field_name, one) for one in listed)


def _one_value(field_name: str, value: object) -> Value:
    try:
        plain = _plain(value)
    except OverflowError:
        plain = None
    if plain is None:
        raise _problem(field_name, "a value must be a text, a number, true or false")
    if isinstance(plain, str) and (len(plain) > MOST_VALUE or not _is_sendable(plain)):
        raise _problem(field_name, f"a text has at most {MOST_VALUE} characters, all of them real ones")
    return plain


def _is_sendable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _problem(field_name: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"filters: {field_name[:80]!r}: {problem}", details={"field": "filters"})
