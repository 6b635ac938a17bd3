"""Filters in the engine's words, and metadata as they find it.

The engine asks each value of a list by itself, and a value alone like a list of one; `name[]` finds lists only. It
writes numbers down as decimals and reads them back a little off; whole ones come back as they were. So bounds that
are not whole stand between the numbers that can be stored, which have 15 digits.
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

# Less than half of what lies between two numbers of 15 digits, and twice of what was seen to be off.
_OFF = 2.0**-51


def filter_payload(metadata: Metadata) -> dict[str, object]:
    """What a passage carries for its filters."""
    return {
        META: {field_name(name): _stored(name, metadata) for name, values in metadata.values.items() if values},
        MOMENTS: {field_name(name): [int(one) for one in found] for name, found in metadata.moments.items()},
    }


def compiled(filters: Filters) -> wire.Filter:
    return wire.Filter(
        must=[_condition(condition) for condition in filters.must],
        should=[_condition(condition) for condition in filters.should],
        must_not=[_condition(condition) for condition in filters.must_not],
    )


def _stored(name: str, metadata: Metadata) -> object:
    alone = metadata.alone(name)
    return [_storable(one) for one in metadata.values[name]] if alone is None else _storable(alone)


def _storable(value: Value) -> str | float | bool:
    return int(value) if _is_whole(value) else value


def _is_whole(value: Value) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_BELOW


def _condition(condition: FieldCondition) -> wire.Condition:
    at = path(META, condition.field)
    match condition.op:
        case Op.EXISTS:
            return _is_empty(at) if condition.values[0] is False else _none_of([_is_empty(at)])
        case Op.EQ | Op.IN:
            return _one_of(list(_equals(at, condition.values)))
        case Op.NE | Op.NIN:
            return _none_of([_is_empty(at), *_equals(at, condition.values)])
        case Op.CONTAINS:
            return _one_of([*_equals(at, condition.values), *_texts_with(at, condition.values)])
        case _:
            return _compares(condition)


def _equals(text: str, values: Sequence[Value]) -> Iterator[wire.Condition]:
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        yield _field(text, match=wire.Match(keywords=wire.RepeatedStrings(strings=texts)))
    for value in values:
        if isinstance(value, bool):
            yield _field(text, match=wire.Match(boolean=value))
        elif not isinstance(value, str):
            yield _field(text, range=wire.Range(gte=_under(value), lte=_over(value)))


def _texts_with(text: str, values: Sequence[Value]) -> Iterator[wire.Condition]:
    for value in values:
        if isinstance(value, str):
            within = wire.Match(text=value)
            alone = wire.Filter(must=[_field(text, match=within)], must_not=[_field(f"{text}[]", match=within)])
            yield wire.Condition(filter=alone)


def _compares(condition: FieldCondition) -> wire.Condition:
    bound = condition.values[0]
    limit = moment_or_number(bound) or 0.0
    at = path(MOMENTS if isinstance(bound, str) else META, condition.field)
    match condition.op:
        case Op.LT:
            return _field(at, range=wire.Range(lt=_under(limit)))
        case Op.LTE:
            return _field(at, range=wire.Range(lte=_over(limit)))
        case Op.GT:
            return _field(at, range=wire.Range(gt=_over(limit)))
        case _:
            return _field(at, range=wire.Range(gte=_under(limit)))


def _under(number: float) -> float:
    return number if _is_whole(number) else number - abs(number) * _OFF


def _over(number: float) -> float:
    return number if _is_whole(number) else number + abs(number) * _OFF


def _one_of(conditions: Sequence[wire.Condition]) -> wire.Condition:
    """The engine takes no condition at all for one that holds."""
    if len(conditions) == 1:
        return conditions[0]
    nothing = wire.Condition(has_id=wire.HasIdCondition())
    return wire.Condition(filter=wire.Filter(should=conditions or [nothing]))


def _none_of(conditions: Sequence[wire.Condition]) -> wire.Condition:
    return wire.Condition(filter=wire.Filter(must_not=conditions))


def _is_empty(text: str) -> wire.Condition:
    return wire.Condition(is_empty=wire.IsEmptyCondition(key=text))


def _field(text: str, *, match: wire.Match | None = None, range: wire.Range | None = None) -> wire.Condition:  # noqa: A002
    return wire.Condition(field=wire.FieldCondition(key=text, match=match, range=range))
