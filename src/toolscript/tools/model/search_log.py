"""Entries of the log of tool searches, and the report of requests that nothing served."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from toolscript.core.retrieval.query import SearchType
from toolscript.core.text import readable, visible
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.query import Strategy, ToolQuery

MAX_TEXT = 500
MAX_WORDS, MAX_WORD = 20, 60
MAX_DAYS = 366
MAX_GAPS = 200
# So many of the latest searches without a good match are counted: the cost of a report does not grow with traffic.
MAX_COUNTED = 100_000

_NO_WORD = re.compile(r"[\W_]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SearchDetail(StrEnum):
    """How much of a search the log keeps: no text of it, or also its text and its unmatched words."""

    FIGURES = "figures"
    TEXT = "text"


class Channel(StrEnum):
    """How a search came."""

    HTTP = "http"
    MCP = "mcp"


@dataclass(frozen=True)
class LoggedSearch:
    """`text` and `unmatched` are empty unless the installation keeps them; `text` is on one line, visible and cut.

    `good_match` is False when nothing fits, and None when that is unknown: a part of the search failed, or
    vectors alone returned something. `tool_id` is the best hit, else the best item below the threshold;
    `tool_name` is its `server__name`, empty unless the entry was read and the catalog has the item.
    """

    at: datetime
    query_id: str
    namespaces: tuple[str, ...]
    channel: Channel
    search_type: SearchType
    strategy: Strategy
    hits: int
    good_match: bool | None
    took_ms: float
    degraded: tuple[str, ...] = ()
    text: str = ""
    unmatched: tuple[str, ...] = ()
    tool_id: int | None = None
    tool_name: str = ""
    confidence: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", visible(readable(" ".join(self.text.split())))[:MAX_TEXT])
        words = (visible(readable(" ".join(word.split())))[:MAX_WORD] for word in self.unmatched[:MAX_WORDS])
        object.__setattr__(self, "unmatched", tuple(words))

    @property
    def position(self) -> "SearchPosition":
        return SearchPosition(self.at, self.query_id)

    @property
    def text_key(self) -> int | None:
        """A hash of the text, whatever its case, punctuation and spaces; None without a text."""
        if not self.text:
            return None
        folded = unicodedata.normalize("NFKC", self.text).casefold()
        words = " ".join(_NO_WORD.split(folded)).strip() or folded
        return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big", signed=True)


class SearchPosition(NamedTuple):
    """The place of an entry in the log, whose latest entry is the first."""

    at: datetime
    query_id: str

    def __str__(self) -> str:
        return f"{self.at.isoformat()} {self.query_id}"

    @classmethod
    def parse(cls, text: str) -> "SearchPosition | None":
        """Return the position in a text, None where there is none."""
        moment, _, query_id = text.partition(" ")
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return None
        return cls(at, query_id) if at.tzinfo is not None and _UUID.fullmatch(query_id) else None


@dataclass(frozen=True)
class SearchFilter:
    """`since` limits how far back the log is read; `good_match` None for all searches."""

    since: datetime
    good_match: bool | None = None


@dataclass(frozen=True)
class Gap:
    """A request without a good match, in any case and punctuation; `last` is its latest search."""

    count: int
    last: LoggedSearch


@dataclass(frozen=True)
class GapReport:
    """The most frequent gaps. `counted` searches without a good match were counted.

    `is_complete` is False where there are more since then: only the latest MAX_COUNTED are counted.
    """

    gaps: tuple[Gap, ...]
    counted: int
    is_complete: bool


def logged_search(
    query: ToolQuery, answer: ToolAnswer, keeps: SearchDetail, channel: Channel, query_id: str, at: datetime
) -> LoggedSearch:
    """Return the log entry of a search, with no more than the installation keeps."""
    best = next(iter(answer.hits or answer.near_misses), None)
    with_text = keeps is SearchDetail.TEXT
    return LoggedSearch(
        at=at,
        query_id=query_id,
        namespaces=query.namespaces,
        channel=channel,
        search_type=query.search_type,
        strategy=answer.strategy_used,
        hits=len(answer.hits),
        good_match=_verdict(answer),
        took_ms=round(answer.timings.total, 3),
        degraded=answer.degraded,
        text=query.text if with_text else "",
        unmatched=answer.unmatched if with_text else (),
        tool_id=None if best is None else best.id,
        confidence=None if best is None else best.confidence,
    )


def _verdict(answer: ToolAnswer) -> bool | None:
    """Return whether something fits. A search that was not complete says nothing about the catalog."""
    if answer.degraded:
        return None
    return answer.good_match if answer.hits else False
