"""Validation of single arguments written by a model; errors explain how to correct them."""

from collections.abc import Sequence

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject


def require_known(
    owner: str, arguments: JsonObject, allowed: Sequence[str], *, also: Sequence[str] = (), word: str = "argument"
) -> None:
    """Raise InvalidRequest for an argument that `owner` does not have; no message names those of `also`."""
    unknown = [name for name in arguments if name not in allowed and name not in also]
    if unknown:
        raise InvalidRequest(
            f"{owner} has no {word} {unknown[0][:100]!r}",
            hint=f"it takes {', '.join(allowed)}",
            details={"field": unknown[0][:100]},
        )


def renamed(arguments: JsonObject, **earlier: str) -> JsonObject:
    """Return the arguments under their names; `earlier` has names that clients may still use, with today's."""
    for old, name in earlier.items():
        if old in arguments and name in arguments:
            raise wrong(old, f"is an earlier name of {name}: give one of them")
    return {earlier.get(name, name): value for name, value in arguments.items()}


def text(arguments: JsonObject, name: str, default: str | None = None) -> str:
    """Return a string argument; it is required unless there is a default."""
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise wrong(name, "must be a string")
    return value


def texts(arguments: JsonObject, name: str, maximum: int, unit: str = "names") -> list[str]:
    values = arguments[name]
    if not isinstance(values, list) or not 1 <= len(values) <= maximum:
        raise wrong(name, f"must be a list of 1 to {maximum} {unit}")
    if not all(isinstance(value, str) for value in values):
        raise wrong(name, "must be a list of strings")
    return values


def text_or_texts(arguments: JsonObject, name: str) -> tuple[str, ...]:
    """Return zero or more strings: models do not always wrap a single value in a list."""
    value = arguments.get(name)
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise wrong(name, "must be a string or a list of strings")
    return tuple(values)


def one_of(arguments: JsonObject, name: str, allowed: Sequence[str]) -> str:
    """Return the value; the default is the first allowed one."""
    value = arguments.get(name, allowed[0])
    if not isinstance(value, str) or value not in allowed:
        raise wrong(name, f"must be one of {', '.join(allowed)}")
    return value


def whole(arguments: JsonObject, name: str, default: int, minimum: int, maximum: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise wrong(name, f"must be a whole number from {minimum} to {maximum}")
    return value


def share(arguments: JsonObject, name: str, default: float) -> float:
    value = arguments.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise wrong(name, "must be a number from 0 to 1")
    return float(value)


def truth(arguments: JsonObject, name: str) -> bool:
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise wrong(name, "must be true or false")
    return value


def wrong(name: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"{name} {rule}", details={"field": name})
