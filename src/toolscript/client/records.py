"""Typed answers: frozen records that are read from JSON.

Plain classes, not dataclasses or Pydantic's: a command that asks a running service must start at once, and a
dataclass costs a hundred times as much to define.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Self, TypeVar, Union, dataclass_transform, get_args, get_origin

T = TypeVar("T")
Read = Callable[[Any], Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """An answer of the API, or a part of one. Its attributes are the fields of the JSON, also unknown ones."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """Read a JSON object; raise ValueError if a field is missing or of another type."""
        if not isinstance(data, Mapping):
            raise ValueError(f"{cls.__name__} is not an object")
        fields = dict(data)
        for name, read in _readers_of(cls).items():
            if name in fields:
                fields[name] = read(fields[name])
            elif not hasattr(cls, name):
                raise ValueError(f"{cls.__name__} has no {name}")
        record = cls.__new__(cls)
        record.__dict__.update(fields)
        return record

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that this record was read from."""
        return {name: _to_json(value) for name, value in self.__dict__.items()}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


def _to_json(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, list):
        return [_to_json(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _to_json(entry) for name, entry in value.items()}
    return value


def list_from_json(entry: type[T], data: object) -> list[T]:
    """Read a JSON list of records."""
    read = _reader(entry)
    if not isinstance(data, list):
        raise ValueError("is not a list")
    return [read(item) for item in data]


_READERS: dict[type[Record], dict[str, Read]] = {}


def _readers_of(record: type[Record]) -> dict[str, Read]:
    if record not in _READERS:
        _READERS[record] = {name: _reader(hint) for name, hint in record.__annotations__.items()}
    return _READERS[record]


def _reader(hint: Any) -> Read:
    """Return a function that reads a value of this type, and raises ValueError for any other."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _GENERIC:
        return _GENERIC[origin](arguments)
    if hint is Any:
        return lambda value: value
    is_record = isinstance(hint, type) and issubclass(hint, Record)
    return hint.from_json if is_record else _plain_reader(hint)


def _plain_reader(kind: type) -> Read:
    def read(value: Any) -> Any:
        is_right = isinstance(value, int | float if kind is float else kind)
        if not is_right or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{value!r:.40} is not {'null' if kind is NoneType else kind.__name__}")
        return value

    return read


def _dict_reader(read_value: Read) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("is not an object")
        return {name: read_value(entry) for name, entry in value.items()}

    return read


def _union_reader(readers: list[Read]) -> Read:
    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return reader(value)
            except ValueError:
                continue
        raise ValueError(f"{value!r:.40} has an unexpected type")

    return read


# Any text is a Literal: the API may add a value at any time.
_GENERIC: dict[Any, Callable[[Sequence[Any]], Read]] = {
    UnionType: lambda members: _union_reader([_reader(member) for member in members]),
    Union: lambda members: _union_reader([_reader(member) for member in members]),
    list: lambda arguments: partial(list_from_json, arguments[0]),
    dict: lambda arguments: _dict_reader(_reader(arguments[1])),
    Literal: lambda _: _plain_reader(str),
}
