"""Filters translated for Qdrant, and the payload that they match.

Qdrant matches each value of a list by itself, and a single value like a list of one; `name[]` matches lists only.
It stores numbers as decimals and reads them back slightly off; integers come back exact. So bounds that are not
integers are placed between the numbers that can be stored, which have 15 digits.
"""

from collections.abc import Iterator, Sequence

from toolscript.core.qdrant import wire
from toolscript.documents.model.filters import (
    WHOLE_BELOW,
    FieldCondition,
    Filters,
    Metadata,
    Op,
    Value,
    moment_or_number,
)
from toolscript.documents.qdrant.tenant_points import META, MOMENTS, field_name, path

# Less than half the distance of two numbers of 15 digits, and twice the largest error observed.
_OFF = 2.0**-51


def filter_payload(metadata: Metadata) -> dict[str, object]:
    """Return the payload of a chunk that filters match."""
    return {
        META: {field_name(name): _stored(name, metadata) for name, values in metadata.values.items() if values},
        MOMENTS: {
            field_name(name): [int(moment) for moment in moments] for name, moments in metadata.moments.items()
        },
    }


def compiled(filters: Filters) -> wire.Filter:
    return wire.Filter(
        must=[_condition(condition) for condition in filters.must],
        should=[_condition(condition) for condition in filters.should],
        must_not=[_condition(condition) for condition in filters.must_not],
    )


def _stored(name: str, metadata: Metadata) -> object:
    alone = metadata.alone(name)
    return [_storable(value) for value in metadata.values[name]] if alone is None else _storable(alone)


def _storable(value: Value) -> str | float | bool:
    return int(value) if _is_whole(value) else value


def _is_whole(value: Value) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_BELOW


def _condition(condition: FieldCondition) -> wire.Condition:
    key = path(META, condition.field)
    match condition.op:
        case Op.EXISTS:
            return _is_empty(key) if condition.values[0] is False else _none_of([_is_empty(key)])
        case Op.EQ | Op.IN:
            return _one_of(list(_equals(key, condition.values)))
        case Op.NE | Op.NIN:
            return _none_of([_is_empty(key), *_equals(key, condition.values)])
        case Op.CONTAINS:
            return _one_of([*_equals(key, condition.values), *_texts_with(key, condition.values)])
        case _:
            return _compares(condition)


def _equals(key: str, values: Sequence[Value]) -> Iterator[wire.Condition]:
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        yield _field(key, match=wire.Match(keywords=wire.RepeatedStrings(strings=texts)))
    for value in values:
        if isinstance(value, bool):
            yield _field(key, match=wire.Match(boolean=value))
        elif not isinstance(value, str):
            yield _field(key, range=wire.Range(gte=_under(value), lte=_over(value)))


def _texts_with(key: str, values: Sequence[Value]) -> Iterator[wire.Condition]:
    for value in values:
        if isinstance(value, str):
            within = wire.Match(text=value)
            alone = wire.Filter(must=[_field(key, match=within)], must_not=[_field(f"{key}[]", match=within)])
            yield wire.Condition(filter=alone)


def _compares(condition: FieldCondition) -> wire.Condition:
    bound = condition.values[0]
    limit = moment_or_number(bound) or 0.0
    key = path(MOMENTS if isinstance(bound, str) else META, condition.field)
    match condition.op:
        case Op.LT:
            return _field(key, range=wire.Range(lt=_under(limit)))
        case Op.LTE:
            return _field(key, range=wire.Range(lte=_over(limit)))
        case Op.GT:
            return _field(key, range=wire.Range(gt=_over(limit)))
        case _:
            return _field(key, range=wire.Range(gte=_under(limit)))


def _under(number: float) -> float:
    return number if _is_whole(number) else number - abs(number) * _OFF


def _over(number: float) -> float:
    return number if _is_whole(number) else number + abs(number) * _OFF


def _one_of(conditions: Sequence[wire.Condition]) -> wire.Condition:
    """Join by OR. Qdrant treats an empty list as true, so it becomes a condition that never holds."""
    if len(conditions) == 1:
        return conditions[0]
    nothing = wire.Condition(has_id=wire.HasIdCondition())
    return wire.Condition(filter=wire.Filter(should=conditions or [nothing]))


def _none_of(conditions: Sequence[wire.Condition]) -> wire.Condition:
    return wire.Condition(filter=wire.Filter(must_not=conditions))


def _is_empty(name: str) -> wire.Condition:
    return wire.Condition(is_empty=wire.IsEmptyCondition(key=name))


def _field(name: str, *, match: wire.Match | None = None, range: wire.Range | None = None) -> wire.Condition:  # noqa: A002
    return wire.Condition(field=wire.FieldCondition(key=name, match=match, range=range))
