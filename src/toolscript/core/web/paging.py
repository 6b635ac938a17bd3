"""Content negotiation and routes with templated paths."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query
from starlette.routing import Match, Route
from starlette.types import Scope

from toolscript.core.items import MAX_ID

MOST = 200
USUAL = 50

NumberInPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Its number.")]
AfterNumber = Annotated[int, Query(ge=0, le=MAX_ID, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MOST, description="Most entries of the page.")]

ANY = "*/*"


def preferred(accepts: Sequence[str], offered: Sequence[str]) -> str:
    """The one of `offered` that is wanted most, the first where it is all the same.

    Whoever wants none of them gets the first: an answer nobody asked for says more than a refusal.
    """
    wanted = dict(_ranges(accepts)) or {ANY: 1.0}
    best = max(offered, key=lambda kind: (_quality(kind, wanted), -offered.index(kind)))
    return best if _quality(best, wanted) > 0 else offered[0]


def _quality(kind: str, wanted: dict[str, float]) -> float:
    """The most exact name decides."""
    for name in (kind, f"{kind.partition('/')[0]}/*", ANY):
        if name in wanted:
            return wanted[name]
    return 0.0


def _ranges(accepts: Sequence[str]) -> list[tuple[str, float]]:
    found = []
    for one in ",".join(accepts).split(","):
        name, *parameters = (part.strip().lower() for part in one.split(";"))
        if name:
            found.append((name, _weight(parameters)))
    return found


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


class TemplatedRoute(Route):
    """The framework's routes leave themselves in the scope; plain ones do not."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self} if found else found
