"""Random documents and filters, with edge cases of names, numbers, strings and dates."""

import random
import struct
from collections.abc import Sequence
from typing import Any

from toolscript.core.items import JsonObject
from toolscript.documents.model.filters import (
    LARGEST,
    LIST_OPS,
    ORDERED,
    FieldCondition,
    Filters,
    Op,
    filterable,
    moment,
)

NAMES = (
    *("lang", "year", "public", "tags", "a", "a.b", "a.b.c", "a-b", "a_b", "a[]", "a[0]", "a[].b", "A", "id"),
    *("f", "tenant", "meta", "-2d-", "f-2e-", "0", "007", " ", "two words", "tab\t", "line\n", "q'uote"),
    *('q"uote', "back\\slash", "per%cent", "*", "$", "..", ".a", "a.", "ünïcode", "u\u0308", "日本", "👩‍👩‍👧"),
    *("\u202e", "n" * 200),
)
# Most documents have most of these, so that filters of several conditions find some.
COMMON = ("lang", "year", "public", "a.b", "日本", 'q"uote')
NUMBERS = (
    *(0, 1, -1, 2, 3.5, 10, 2026, 0.0, -0.0, 0.1, 0.3, 0.1 + 0.2, 1 / 3, 2 / 3, 123.456, 99.99999999999999),
    *(1e300, 1e308, 1.7976931348623157e308, -1e308, 1e-300, 9e-301, 5e-324, 2.2250738585072014e-308, 10**400),
    *(2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, 2**63, -(2**63), 2**64),
    *(1e15 - 1, 1e15 - 0.5, 1e15, 1e15 + 0.5, 4503599627370495.5, 1e16, 1e22, 1e23, 1.5e-8, 9.99999999999999e-9),
    # The engine reads the first four back too large, the others too small.
    *(6.75161326489746e106, 4.40024e-254, 7.64230860326831e-15, -6.795e95),
    *(3.40376415524346e287, 4.39076e86, 4.8807239808784e-23, -3.9500778890144e-56),
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "A",
        "ab",
        "abc",
        "b",
        "a b",
        "b a",
        "a  b",
        "é",
        "e\u0301",
        "É",
        "ß",
        "SS",
        "İ",
        "i̇",
        "日本語",
    ),
    *(
        "本",
        "👩‍👩‍👧",
        "👩",
        "0",
        "1",
        "1.0",
        "-0.0",
        "true",
        "false",
        "True",
        "null",
        "NaN",
        "%",
        "%a%",
        "*",
        ".*",
    ),
    *(
        "_",
        "\\",
        '"',
        "'",
        "[]",
        "{}",
        "a\nb",
        "a\tb",
        "\u202eab",
        "x" * 990,
        "x" * 5_000,
        "\ufeff",
        "f",
        "meta.fa",
    ),
)
DATES = (
    *("2026-01-31", "2026-02-30", "2024-02-29", "2023-02-29", "1970-01-01", "1969-12-31", "0001-01-01"),
    *("9999-12-31", "0000-01-01", "2026-1-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00"),
    *("2026-01-31 12:00:00+00:00", "2026-01-31T13:00:00+01:00", "2026-01-31T13:00:00+0100", "2026-01-31T12:00"),
    *("2026-01-31T12:00:00.000001Z", "2026-01-31T12:00:00.0000019Z", "2026-01-31T11:59:59.999999Z"),
    *("1969-12-31T23:59:59.999999Z", "1900-03-01T00:00:00-12:00", "0001-01-01T00:00:00+14:00"),
    *("9999-12-31T23:59:59.999999-14:00", "9999-12-31T23:59:59.999998-14:00", "2016-12-31T23:59:60Z"),
    *("2026-01-31T24:00:00Z", "2026-01-31t12:00:00z", "2026-01-31T12:00:00+25:00", " 2026-01-31", "2026-W05-6"),
    *("20260131", "2026-01"),
)


class RandomFilters:
    """Generates documents and filters, deterministic by seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def documents(self, count: int) -> list[JsonObject]:
        return [self._document() for _ in range(count)]

    def filters(self, documents: Sequence[JsonObject], count: int) -> list[Filters]:
        """Return filters; most of them use stored values, or values close to them."""
        stored: dict[str, list[Any]] = {}
        for document in documents:
            for name, values in filterable(document).values.items():
                stored.setdefault(name, []).extend(values)
        return [self._filters(stored) for _ in range(count)]

    def _document(self) -> JsonObject:
        names = [
            *self._random.sample(COMMON, self._random.randint(0, len(COMMON))),
            *self._random.sample(NAMES, 4),
        ]
        inner = {name for name in names if self._random.random() < 0.3}
        document = {name: self._value() for name in names if name not in inner}
        if inner and "a" not in document:
            document["a"] = {name: self._value() for name in names if name in inner}
        return document

    def _value(self, depth: int = 0) -> object:
        kind = self._random.random()
        if kind < 0.55 or depth > 1:
            return self._scalar()
        if kind < 0.85:
            return [self._scalar() for _ in range(self._random.randint(0, 5))]
        if kind < 0.9:
            return [self._value(depth + 1) for _ in range(self._random.randint(0, 3))]
        if kind < 0.97:
            return {self._random.choice(("", "b", "b.c", "é")): self._value(depth + 1)}
        return None

    def _scalar(self) -> object:
        kind = self._random.random()
        if kind < 0.3:
            return self._number()
        if kind < 0.65:
            return self._random.choice(TEXTS)
        if kind < 0.8:
            return self._random.choice(DATES)
        return self._random.random() < 0.5 if kind < 0.97 else None

    def _number(self) -> float:
        kind = self._random.random()
        if kind < 0.6:
            return self._random.choice(NUMBERS)
        if kind < 0.7:
            (number,) = struct.unpack("<d", self._random.randbytes(8))
            return float(number) if abs(number) < LARGEST else 7.0
        if kind < 0.8:
            return self._random.uniform(-1, 1) * 10.0 ** self._random.randint(-40, 40)
        return self._random.randint(-3, 3) if kind < 0.9 else round(self._random.uniform(-100, 100), 2)

    def _filters(self, stored: dict[str, list[Any]]) -> Filters:
        must, should, must_not = (self._random.choice((0, 0, 0, 1, 1, 2, 3)) for _ in range(3))
        if not must + should + must_not:
            must = 1
        return Filters(
            *(tuple(self._condition(stored) for _ in range(count)) for count in (must, should, must_not))
        )

    def _condition(self, stored: dict[str, list[Any]]) -> FieldCondition:
        rare = self._random.choice(sorted(stored)) if self._random.random() < 0.9 else "nowhere"
        name = self._random.choice(COMMON) if self._random.random() < 0.7 else rare
        op = self._random.choice(list(Op))
        if op is Op.EXISTS:
            return FieldCondition(name, op, (self._random.random() < 0.5,))
        count = self._random.choice((0, 1, 2, 5, 20)) if op in LIST_OPS else 1
        values = [self._filter_value(stored.get(name, [])) for _ in range(count)]
        if op in ORDERED and (isinstance(values[0], bool) or not _is_ordered(values[0])):
            values = [self._number() if self._random.random() < 0.5 else self._date()]
        return FieldCondition(name, op, tuple(values))

    def _filter_value(self, stored: Sequence[Any]) -> Any:
        if not stored or self._random.random() < 0.2:
            other = self._scalar()
            return False if other is None else _short(other)
        value = self._random.choice(stored)
        return _short(value if self._random.random() < 0.6 else self._near(value))

    def _near(self, value: Any) -> Any:
        if isinstance(value, bool):
            return self._random.choice((not value, int(value), str(value).lower()))
        if isinstance(value, str):
            start, end = sorted(self._random.randrange(len(value) + 1) for _ in range(2))
            return self._random.choice((value[start:end], value.upper(), value + "a", value[::-1]))
        last_digit = abs(value) * 10.0**-14
        return self._random.choice((value + last_digit, value - last_digit, -value, str(value), value == 1))

    def _date(self) -> str:
        return self._random.choice([date for date in DATES if moment(date) is not None])


def _is_ordered(value: object) -> bool:
    return not isinstance(value, str) or moment(value) is not None


def _short(value: Any) -> Any:
    return value[:1_000] if isinstance(value, str) else value
