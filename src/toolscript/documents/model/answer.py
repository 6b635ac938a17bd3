"""The result of a document search."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.core.items import JsonObject
from toolscript.core.retrieval.results import DocumentKey, Total


@dataclass(frozen=True)
class Snippet:
    """A window of a document's text, from `start` to before `end`.

    `highlights` are the matches: start and end (exclusive), counted from the window's first character.
    """

    text: str
    start: int
    end: int
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class DocumentHit:
    """`passage` is the number of the chunk that matched best."""

    key: DocumentKey
    id: str
    score: float
    metadata: JsonObject
    snippet: Snippet | None = None
    passage: int = 0


@dataclass(frozen=True)
class DocumentAnswer:
    """`index_version` is the name of the index that was searched.

    `good_match` says whether any document fits the query, and is the same on every page of a ranking, but never
    true without hits; None if it cannot be told, or without a query.
    """

    hits: Sequence[DocumentHit]
    total: Total
    next_cursor: str = ""
    degraded: tuple[str, ...] = ()
    reranked_by: str = ""
    index_version: str = ""
    good_match: bool | None = None
