"""Whether a document passes filters. Every engine must answer what this answers."""

import operator
from collections.abc import Callable, Mapping, Sequence

from toolscript.model.filters import FieldCondition, Filters, Metadata, Op, Value, moment_or_number

_COMPARED: Mapping[Op, Callable[[float, float], bool]] = {
    Op.LT: operator.lt,
    Op.LTE: operator.le,
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
}


def passes(filters: Filters, metadata: Metadata) -> bool:
    return (
        all(_holds(one, metadata) for one in filters.must)
        and (not filters.should or any(_holds(one, metadata) for one in filters.should))
        and not any(_holds(one, metadata) for one in filters.must_not)
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


def _shares(values: Sequence[Value], wanted: Sequence[Value]) -> bool:
    return any(_equal(value, one) for value in values for one in wanted)


def _equal(value: Value, other: Value) -> bool:
    """True is not 1."""
    return isinstance(value, bool) is isinstance(other, bool) and value == other


def _is_within(part: Value, whole: Value | None) -> bool:
    return isinstance(part, str) and isinstance(whole, str) and part in whole


def _compares(condition: FieldCondition, metadata: Metadata) -> bool:
    bound = condition.values[0]
    limit = moment_or_number(bound)
    compared = _COMPARED[condition.op]
    return limit is not None and any(compared(one, limit) for one in _like(bound, condition.field, metadata))


def _like(bound: Value, name: str, metadata: Metadata) -> Sequence[float]:
    if isinstance(bound, str):
        return metadata.moments.get(name, ())
    values = metadata.values.get(name, ())
    return [one for one in values if isinstance(one, float) and not isinstance(one, bool)]
