"""Pages of lists with opaque cursors, content negotiation, and routes with templated paths."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, Self, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, Field
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Match, Route
from starlette.types import Scope

from toolscript.core.items import MAX_ID
from toolscript.core.web.cursors import CURSOR_PATTERN, Key, encode_cursor

MAX_LIMIT = 200
USUAL = 50
# A key of several hundred characters fits, of any script.
MAX_CURSOR = 4_000

NumberInPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Its id.")]
Cursor = Annotated[
    str,
    Query(
        max_length=MAX_CURSOR,
        description="`next_cursor` of the previous page; empty for the first page.",
        # Checked where it is decoded, with a hint.
        json_schema_extra={"pattern": CURSOR_PATTERN},
    ),
]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries of the page.")]

ANY = "*/*"

Shown = TypeVar("Shown")


class Page(BaseModel, Generic[Shown]):
    """One page of a list. Every list of the API has this shape."""

    results: list[Shown] = Field(description="The entries of this page.")
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one.")

    @classmethod
    def of(
        cls, entries: Sequence[Any], limit: int, show: Callable[[Any], Shown], key: Callable[[Any], Key]
    ) -> Self:
        """Build a page. `entries` has one more than `limit` if there is a next page; `key` is its position."""
        following = encode_cursor(key(entries[limit - 1])) if len(entries) > limit else None
        return cls.model_construct(results=[show(entry) for entry in entries[:limit]], next_cursor=following)


def preferred(accepts: Sequence[str], offered: Sequence[str]) -> str:
    """Return the media type of `offered` with the highest quality; the first one wins ties.

    A client that accepts none of them gets the first: that is more useful than an error.
    """
    qualities = dict(_ranges(accepts)) or {ANY: 1.0}
    best = max(offered, key=lambda kind: (_quality(kind, qualities), -offered.index(kind)))
    return best if _quality(best, qualities) > 0 else offered[0]


def _quality(kind: str, qualities: dict[str, float]) -> float:
    """Return the quality of the most specific matching range."""
    for name in (kind, f"{kind.partition('/')[0]}/*", ANY):
        if name in qualities:
            return qualities[name]
    return 0.0


def _ranges(accepts: Sequence[str]) -> list[tuple[str, float]]:
    ranges = []
    for item in ",".join(accepts).split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        if name:
            ranges.append((name, _weight(parameters)))
    return ranges


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


class _Number(Convertor[str]):
    """Digits of a path parameter, which FastAPI reads; so `/tools/search` is not the path of one tool."""

    regex = "[0-9]{1,40}"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("number", _Number())


class TemplatedRoute(Route):
    """Starlette route that adds itself to the scope, as FastAPI's routes do."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return match, {**child_scope, "route": self} if child_scope else child_scope
