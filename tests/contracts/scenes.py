"""Small things that contract tests put in and expect back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.model.index import Point, Scalar
from toolscript.model.items import Item, ItemKind, JsonObject
from toolscript.model.models import IndexCard, ModelCard, Vector
from toolscript.model.words import terms_of_word, words_of
from toolscript.ports import Catalog, DirtySet

DIMENSIONS = 8
CARD = IndexCard(ModelCard("small", "1", DIMENSIONS))
OTHER_CARD = IndexCard(ModelCard("other", "1", DIMENSIONS))


@dataclass(frozen=True)
class Record:
    """A catalog and the dirty set it writes to; `let_pass` moves their clock by so many seconds."""

    catalog: Catalog
    dirty: DirtySet
    let_pass: Callable[[float], Awaitable[None]]


def tool(name: str, description: str = "", schema: JsonObject | None = None) -> Item:
    return Item(f"server__{name}", ItemKind.TOOL, "server", name, description, input_schema=schema)


def tools(count: int, description: str = "") -> list[Item]:
    return [tool(f"tool_{number}", description) for number in range(count)]


def axis(number: int) -> Vector:
    """The unit vector along one axis."""
    return np.asarray(np.eye(DIMENSIONS)[number], dtype=np.float32)


def between(first: int, second: int, share: float) -> Vector:
    """A unit vector whose cosine with the first axis is `share`."""
    return np.asarray(share * axis(first) + np.sqrt(1 - share**2) * axis(second), dtype=np.float32)


def terms(text: str) -> dict[int, float]:
    """Each word of the text once, with weight one."""
    return {terms_of_word(word)[1]: 1.0 for word in words_of(text)}


def point(
    id_: int,
    version: int = 1,
    vector: Vector | None = None,
    words: str = "",
    **fields: Scalar | Sequence[str] | None,
) -> Point:
    given: Mapping[str, Scalar | Sequence[str] | None] = {"type": "tool", "is_active": True, **fields}
    return Point(id_, version, axis(0) if vector is None else vector, terms(words), given)
