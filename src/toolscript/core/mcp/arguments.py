"""Reads single arguments that a model wrote. What cannot be understood is said so that it can be put right."""

from collections.abc import Sequence

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject


def require_known(tool: str, given: JsonObject, known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidRequest(
            f"{tool} has no argument {unknown[0][:100]!r}",
            hint=f"it takes {', '.join(known)}",
            details={"field": unknown[0][:100]},
        )


def text(given: JsonObject, name: str, default: str | None = None) -> str:
    """Without `usual`, one has to be given."""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise wrong(name, "must be a string")
    return value


def texts(given: JsonObject, name: str, maximum: int, of_what: str = "names") -> list[str]:
    values = given[name]
    if not isinstance(values, list) or not 1 <= len(values) <= maximum:
        raise wrong(name, f"must be a list of 1 to {maximum} {of_what}")
    if not all(isinstance(value, str) for value in values):
        raise wrong(name, "must be a list of strings")
    return values


def text_or_texts(given: JsonObject, name: str) -> tuple[str, ...]:
    """One, several or none: a model that means one does not always make a list of it."""
    value = given.get(name)
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise wrong(name, "must be a string or a list of strings")
    return tuple(values)


def one_of(given: JsonObject, name: str, allowed: Sequence[str]) -> str:
    """The value; the first of the allowed ones when none is given."""
    value = given.get(name, allowed[0])
    if not isinstance(value, str) or value not in allowed:
        raise wrong(name, f"must be one of {', '.join(allowed)}")
    return value


def whole(given: JsonObject, name: str, default: int, minimum: int, maximum: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
        raise wrong(name, f"must be a whole number from {minimum} to {maximum}")
    return value


def share(given: JsonObject, name: str, default: float) -> float:
    value = given.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise wrong(name, "must be a number from 0 to 1")
    return float(value)


def truth(given: JsonObject, name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise wrong(name, "must be true or false")
    return value


def wrong(name: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"{name} {rule}", details={"field": name})
