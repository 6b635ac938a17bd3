"""Namespaces: parts of one catalog that do not see each other."""

import re
from collections.abc import Iterable, Sequence

from toolscript.core.errors import Forbidden, InvalidRequest

DEFAULT_NAMESPACE = "default"
ONLY_DEFAULT = frozenset({DEFAULT_NAMESPACE})
MAX_NAMESPACES = 32

# The namespaces that a client sees; None for an administrator, who sees all.
Namespaces = frozenset[str] | None

# Part of the name of a collection, so no upper case and no separators of names.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
NAME_PATTERN = f"^{_NAME.pattern}$"


def is_namespace(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def valid_namespace(name: str) -> str:
    """Return the name; raise InvalidRequest if no namespace can have it."""
    if not is_namespace(name):
        raise InvalidRequest(
            f"{name[:80]!r} cannot be the name of a namespace",
            hint="1 to 63 lower-case letters, digits and -, the first a letter or a digit",
            details={"field": "namespace"},
        )
    return name


def seen_in(namespaces: Namespaces, name: str) -> bool:
    return namespaces is None or name in namespaces


def ordered(namespaces: Iterable[str]) -> tuple[str, ...]:
    """Return distinct names in a stable order: a search among the same namespaces uses the same caches."""
    return tuple(sorted(set(namespaces)))


def require_seen(seen: Namespaces, *names: str) -> str:
    """Return the first name. Raise Forbidden if one is not seen, whether it exists or not."""
    if all(seen_in(seen, name) for name in names):
        return names[0]
    raise Forbidden(
        "the token does not see all of the namespaces that the request names",
        hint="name only those of its claim, or none",
        details={"field": "namespace"},
    )


def chosen_namespace(seen: Namespaces, requested: str | None) -> str:
    """Return the namespace to work in. Without a request it is `default`, or the only one that is seen."""
    if requested is not None:
        return require_seen(seen, requested)
    if seen_in(seen, DEFAULT_NAMESPACE):
        return DEFAULT_NAMESPACE
    names = ordered(seen or ())
    if len(names) == 1:
        return names[0]
    raise InvalidRequest(
        "the token sees several namespaces" if names else "the token sees no namespace",
        hint="name one as `namespace`" if names else "get a token with a claim that names one",
        details={"field": "namespace"},
    )


def searched_namespaces(seen: Namespaces, requested: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the namespaces to search: those of the request, or all that a token sees, or `default`."""
    if requested:
        require_seen(seen, *requested)
        return ordered(requested)
    return ordered(ONLY_DEFAULT if seen is None else seen)
