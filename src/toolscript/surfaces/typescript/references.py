"""Where a `$ref` leads within its own document."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Target:
    """`path` names the place in one way, however the reference was spelled."""

    path: tuple[str, ...]
    schema: object


def target_of(reference: object, document: object) -> Target | None:
    """None for what is elsewhere or nowhere: nothing is ever fetched."""
    if not isinstance(reference, str):
        return None
    address, _, fragment = reference.partition("#")
    if address and address != _own_address(document):
        return None
    if fragment and not fragment.startswith("/"):
        return None
    path = tuple(map(_step, unquote(fragment).split("/")[1:]))
    return _followed(path, document)


def _own_address(document: object) -> object:
    own = document.get("$id") if isinstance(document, Mapping) else None
    return own.removesuffix("#") if isinstance(own, str) else None


def _step(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")


def _followed(path: tuple[str, ...], document: object) -> Target | None:
    found = document
    for step in path:
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and _is_place(step, found):
            found = found[int(step)]
        else:
            return None
    return Target(path, found) if isinstance(found, Mapping | bool) else None


def _is_place(step: str, among: list[object]) -> bool:
    return step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(among)
