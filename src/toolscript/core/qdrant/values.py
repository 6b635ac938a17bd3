"""Conversion of payloads and filters to the engine's wire format and back."""

from collections.abc import Iterator, Mapping, Sequence

from toolscript.core.qdrant import wire
from toolscript.core.retrieval.model import Condition, PointVersion, Scalar, Where


def to_value(value: object) -> wire.Value:
    if value is None:
        return wire.Value(null_value=wire.NullValue.NULL_VALUE)
    if isinstance(value, (bool, int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        fields = {str(key): to_value(inner) for key, inner in value.items()}
        return wire.Value(struct_value=wire.Struct(fields=fields))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return wire.Value(list_value=wire.ListValue(values=[to_value(inner) for inner in value]))
    return wire.Value(string_value=str(value))


def _number(value: float) -> wire.Value:
    if isinstance(value, bool):
        return wire.Value(bool_value=value)
    return wire.Value(integer_value=value) if isinstance(value, int) else wire.Value(double_value=value)


def from_value(value: wire.Value) -> object:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    if kind == "list_value":
        return [from_value(inner) for inner in value.list_value.values]
    if kind == "struct_value":
        return {key: from_value(inner) for key, inner in value.struct_value.fields.items()}
    return getattr(value, kind)


class Payload(Mapping[str, object]):
    """Payload of a point; each field is converted to a plain value on access."""

    def __init__(self, fields: Mapping[str, wire.Value]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> object:
        # A protobuf map creates an entry for a missing key.
        if name not in self._fields:
            raise KeyError(name)
        return from_value(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def where_filter(where: Where, only: Sequence[int] = ()) -> wire.Filter | None:
    """Return the filter; `only` restricts it to these points, empty means all."""
    conditions = [_condition(condition) for condition in where]
    if only:
        conditions.append(_has_id(*only))
    return wire.Filter(must=conditions) if conditions else None


def unless_newer(points: Sequence[PointVersion]) -> wire.Filter:
    """Return a filter for those of the points that are not stored in a newer version."""
    return wire.Filter(
        should=[
            wire.Condition(filter=wire.Filter(must=[_has_id(point.id), _range("version", at_most=point.version)]))
            for point in points
        ]
    )


def _condition(condition: Condition) -> wire.Condition:
    fields = [
        wire.Condition(field=wire.FieldCondition(key=condition.field, match=match))
        for match in _matches(condition.any_of)
    ]
    return fields[0] if len(fields) == 1 else wire.Condition(filter=wire.Filter(should=fields))


def _matches(values: Sequence[Scalar]) -> Iterator[wire.Match]:
    """Yield matches: one per type of value, and one per boolean, as the engine requires."""
    yield from (wire.Match(boolean=value) for value in values if isinstance(value, bool))
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    strings = [value for value in values if isinstance(value, str)]
    if integers:
        yield wire.Match(integers=wire.RepeatedIntegers(integers=integers))
    if len(strings) == 1:
        yield wire.Match(keyword=strings[0])
    elif strings or not values:
        yield wire.Match(keywords=wire.RepeatedStrings(strings=strings))


def _has_id(*point_ids: int) -> wire.Condition:
    return wire.Condition(
        has_id=wire.HasIdCondition(has_id=[wire.PointId(num=point_id) for point_id in point_ids])
    )


def _range(field: str, *, at_most: int) -> wire.Condition:
    return wire.Condition(field=wire.FieldCondition(key=field, range=wire.Range(lte=at_most)))
