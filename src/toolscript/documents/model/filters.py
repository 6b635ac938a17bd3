"""Filters over metadata: their limits, and whether a document passes them.

`filterable` returns the part of a document's metadata that filters can use. The evaluator and every engine work on
it, so that a filter means the same everywhere:
- objects within objects are named by their path, `author.name`;
- a field has values: strings, numbers and booleans; a list has several, null and an empty list have none;
- lists and objects inside a list cannot be filtered by, nor can a field with a very long name;
- a number counts by its first 15 digits, an integer below 2^63 as a float64: that much survives every engine;
- a string that is an ISO 8601 date, or date and time, is a moment too, to the microsecond.
"""

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject

MAX_CONDITIONS = 50
MAX_VALUES = 100
MAX_FIELD = 200
MAX_VALUE = 1_000

LARGEST, SMALLEST = 1e300, 1e-300
WHOLE_BELOW = 2.0**63

Value = str | float | bool

_DIGITS = 15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


class Op(StrEnum):
    """How a condition compares the values of a field."""

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
LIST_OPS = frozenset({Op.IN, Op.NIN})


@dataclass(frozen=True)
class FieldCondition:
    """`values` holds one value; any number of values for `in` and `nin`; true or false for `exists`.

    - `eq`: some value of the field equals it; `in`: some value equals one of these;
    - `ne`, `nin`: the field has values, and none of them equals it, or one of these;
    - `lt`, `lte`, `gt`, `gte`: some number compares so with a number, some moment with a moment;
    - `contains`: a single string contains it as a substring (case-sensitive); anything else has it as a value;
    - `exists`: the field has values (true), or has none (false).
    For a field that a document lacks, only `exists: false` holds.
    """

    field: str
    op: Op
    values: tuple[Value, ...]

    @classmethod
    def of(cls, field: str, op: str, value: object) -> "FieldCondition":
        """Return the condition of a request, or raise InvalidRequest."""
        if op not in set(Op):
            raise _problem(field, f"{op[:20]!r} is not an op", f"one of {', '.join(Op)}")
        parsed_op = Op(op)
        if parsed_op in LIST_OPS:
            if not isinstance(value, Sequence) or isinstance(value, str):
                raise _problem(field, f"{op} takes a list of values", "write [a, b, c]")
            return cls(field, parsed_op, tuple(value))
        single = True if parsed_op is Op.EXISTS and value is None else value
        return cls(field, parsed_op, (single,))  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if not 0 < len(self.field) <= MAX_FIELD or not _is_unicode(self.field):
            raise _problem(self.field, "is not a field name", f"a name has 1 to {MAX_FIELD} characters")
        if len(self.values) > MAX_VALUES:
            problem = f"{self.op} with {len(self.values)} values"
            raise _problem(self.field, problem, f"at most {MAX_VALUES}; several conditions of `should` take more")
        object.__setattr__(self, "values", tuple(_checked(self.field, value) for value in self.values))
        if self.op not in LIST_OPS:
            self._require_one()

    def _require_one(self) -> None:
        if len(self.values) != 1:
            raise _problem(self.field, f"{self.op} takes one value", "`in` and `nin` take several")
        value = self.values[0]
        if self.op is Op.EXISTS and not isinstance(value, bool):
            raise _problem(self.field, "exists takes true or false", "true: it has values; false: it has none")
        if self.op in ORDERED and moment_or_number(value) is None:
            problem = f"{self.op} compares numbers or dates, not {str(value)[:40]!r}"
            raise _problem(self.field, problem, "a number, or a date like 2026-01-31 or 2026-01-31T12:00:00Z")


@dataclass(frozen=True)
class Filters:
    """All of `must` hold, one of `should` if there are any, none of `must_not`."""

    must: tuple[FieldCondition, ...] = ()
    should: tuple[FieldCondition, ...] = ()
    must_not: tuple[FieldCondition, ...] = ()

    def __post_init__(self) -> None:
        if len(self.conditions) > MAX_CONDITIONS:
            raise InvalidRequest(
                f"filters: {len(self.conditions)} conditions, at most {MAX_CONDITIONS} are allowed",
                hint="`in` and `nin` take many values in one condition",
                details={"field": "filters"},
            )

    def __bool__(self) -> bool:
        return bool(self.conditions)

    @property
    def conditions(self) -> tuple[FieldCondition, ...]:
        return self.must + self.should + self.must_not


NO_FILTERS = Filters()


@dataclass(frozen=True)
class Metadata:
    """A document's metadata as filters see it: the values of each field, and the moments among its texts.

    `lists` are the fields that hold a list, of any length.
    """

    values: Mapping[str, tuple[Value, ...]]
    moments: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lists: frozenset[str] = frozenset()

    def alone(self, name: str) -> Value | None:
        """Return the value of a field with exactly one value that is not a list."""
        values = self.values.get(name, ())
        return values[0] if len(values) == 1 and name not in self.lists else None


def filterable(metadata: JsonObject) -> Metadata:
    gathered: defaultdict[str, list[Value]] = defaultdict(list)
    lists = set()
    for name, value in _fields(metadata):
        if isinstance(value, Sequence) and not isinstance(value, str):
            lists.add(name)
            gathered[name] += (plain for element in value if (plain := _plain(element)) is not None)
        elif (plain := _plain(value)) is not None:
            gathered[name].append(plain)
    values = {name: tuple(listed) for name, listed in gathered.items() if listed}
    moments = {name: parsed for name, listed in values.items() if (parsed := _moments(listed))}
    return Metadata(values, moments, frozenset(lists & values.keys()))


def moment_or_number(value: Value) -> float | None:
    """Return what `lt`, `lte`, `gt` and `gte` compare: a number, or the microseconds of a moment."""
    if isinstance(value, bool):
        return None
    return moment(value) if isinstance(value, str) else value


def moment(text: str) -> float | None:
    """Return the microseconds since 1970 of a date, or of a date and time; without a time zone it is UTC."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return float(((read if read.tzinfo else read.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


def comparable(number: float) -> float:
    """Return the number that is compared in place of this one. The mapping is monotonic."""
    near = float(max(-LARGEST, min(LARGEST, number)))
    if abs(near) < SMALLEST:
        return 0.0
    if 10**_DIGITS <= abs(near) < WHOLE_BELOW:
        return float(round(near))
    return float(f"{near:.{_DIGITS}g}")


def _fields(value: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            yield from _fields(inner, f"{name}.")
        elif 0 < len(name) <= MAX_FIELD:
            yield name, inner


def _plain(value: object) -> Value | None:
    if isinstance(value, (str, bool)):
        return value
    return comparable(value) if isinstance(value, (int, float)) else None


def _moments(values: Sequence[Value]) -> tuple[float, ...]:
    parsed = (moment(value) for value in values if isinstance(value, str))
    return tuple(number for number in parsed if number is not None)


def _checked(field_name: str, value: object) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise _problem(field_name, f"{value} is not a number", "leave the condition out where there is no bound")
    plain = _plain(value)
    if plain is None:
        problem = "a value must be a string, a number, true or false"
        raise _problem(
            field_name, problem, "`in` takes a list of them; `exists` with false finds documents without one"
        )
    if isinstance(plain, str) and len(plain) > MAX_VALUE:
        raise _problem(field_name, f"a string of {len(plain)} characters", f"at most {MAX_VALUE} are allowed")
    if isinstance(plain, str) and not _is_unicode(plain):
        raise _problem(field_name, "a string with an invalid character", "send it as UTF-8")
    return plain


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _problem(field_name: str, problem: str, hint: str) -> InvalidRequest:
    readable_name = field_name[:80].encode("utf-8", "backslashreplace").decode()
    return InvalidRequest(f"filters: {readable_name!r}: {problem}", hint=hint, details={"field": "filters"})


_COMPARED: Mapping[Op, Callable[[float, float], bool]] = {
    Op.LT: operator.lt,
    Op.LTE: operator.le,
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
}


def passes(filters: Filters, metadata: Metadata) -> bool:
    return (
        all(_holds(condition, metadata) for condition in filters.must)
        and (not filters.should or any(_holds(condition, metadata) for condition in filters.should))
        and not any(_holds(condition, metadata) for condition in filters.must_not)
    )


def _holds(condition: FieldCondition, metadata: Metadata) -> bool:
    values = metadata.values.get(condition.field, ())
    match condition.op:
        case Op.EXISTS:
            return bool(values) is condition.values[0]
        case Op.EQ | Op.IN:
            return _shares(values, condition.values)
        case Op.NE | Op.NIN:
            return bool(values) and not _shares(values, condition.values)
        case Op.CONTAINS:
            return _shares(values, condition.values) or _is_within(
                condition.values[0], metadata.alone(condition.field)
            )
        case _:
            return _compares(condition, metadata)


def _shares(values: Sequence[Value], expected: Sequence[Value]) -> bool:
    return any(_equal(value, other) for value in values for other in expected)


def _equal(value: Value, other: Value) -> bool:
    """Compare strictly: True does not equal 1."""
    return isinstance(value, bool) is isinstance(other, bool) and value == other


def _is_within(part: Value, whole: Value | None) -> bool:
    return isinstance(part, str) and isinstance(whole, str) and part in whole


def _compares(condition: FieldCondition, metadata: Metadata) -> bool:
    bound = condition.values[0]
    limit = moment_or_number(bound)
    compared = _COMPARED[condition.op]
    return limit is not None and any(compared(value, limit) for value in _like(bound, condition.field, metadata))


def _like(bound: Value, name: str, metadata: Metadata) -> Sequence[float]:
    if isinstance(bound, str):
        return metadata.moments.get(name, ())
    values = metadata.values.get(name, ())
    return [value for value in values if isinstance(value, float) and not isinstance(value, bool)]
