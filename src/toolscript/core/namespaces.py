"""Namespaces: parts of one catalog that do not see each other."""

import re
from collections.abc import Iterable

from toolscript.core.errors import InvalidRequest

DEFAULT_NAMESPACE = "default"
MAX_NAMESPACES = 32

# The namespaces that a client sees; None for an administrator, who sees all.
Namespaces = frozenset[str] | None

# Part of the name of a collection, so no upper case and no separators of names.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


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
