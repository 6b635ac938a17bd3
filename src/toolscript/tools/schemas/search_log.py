"""Answers about the log of tool searches: one model each for HTTP and `--json`."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from toolscript.core.retrieval.query import SearchType
from toolscript.core.web.fields import Time, model_of
from toolscript.core.web.paging import Page
from toolscript.tools.model.query import Strategy
from toolscript.tools.model.search_log import Channel, Gap, GapReport, LoggedSearch, SearchDetail

LogState = Literal["off", "figures", "text"]

TEXT = "What was searched for: on one line, and at most 500 characters; null unless the log keeps texts."
TOOL_ID = "Id of the best tool: the first hit, else the nearest below the threshold; null if there is none."
TOOL = "That tool, as `server__name`; null if the catalog does not have it any more."
CONFIDENCE = "How likely that tool was meant, 0 to 1; null if a single retriever was requested."
UNMATCHED = "Words of the request that no candidate has; empty unless the log keeps texts."
NAMESPACES = "The namespaces that were searched. Clients that do not see all of them do not see the search."
_SEARCH: dict[str, Any] = {
    "at": "2026-01-31T12:00:00.123456+00:00",
    "query_id": "6d2f1c1e-7c0b-4a6e-9a51-0f1f4a3c2b10",
    "namespaces": ["default"],
    "channel": "mcp",
    "search_type": "hybrid",
    "strategy": "hierarchical",
    "text": "book a flight to Oslo",
    "hits": 1,
    "good_match": False,
    "tool_id": 17,
    "tool": "calendar__create_event",
    "confidence": 0.11,
    "unmatched_words": ["flight", "oslo"],
    "degraded": [],
    "took_ms": 8.4,
}
_GAP: dict[str, Any] = {
    "text": "book a flight to Oslo",
    "count": 42,
    "last_at": "2026-01-31T12:00:00.123456+00:00",
    "namespaces": ["default"],
    "tool_id": 17,
    "tool": "calendar__create_event",
    "confidence": 0.11,
    "unmatched_words": ["flight", "oslo"],
}


class SearchShown(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_SEARCH]})

    at: Time = Field(description="Time of the answer.")
    query_id: str = Field(description="Id of the search, which is also in its answer and in the log of requests.")
    namespaces: list[str] = Field(description=NAMESPACES)
    channel: Channel = Field(description="How the search came: over `http` or `mcp`.")
    search_type: SearchType = Field(description="Requested retrievers.")
    strategy: Strategy = Field(description="Strategy that ran.")
    text: str | None = Field(description=TEXT)
    hits: int = Field(description="Number of results.")
    good_match: bool | None = Field(
        description="Whether something fits: false also when nothing was returned; null when that is unknown, "
        "because a part of the search failed, or vectors alone were requested and returned something."
    )
    tool_id: int | None = Field(description=TOOL_ID)
    tool: str | None = Field(description=TOOL)
    confidence: float | None = Field(description=CONFIDENCE)
    unmatched_words: list[str] = Field(description=UNMATCHED)
    degraded: list[str] = Field(description="Parts of the search that failed.")
    took_ms: float = Field(description="Milliseconds that the search took.")

    @classmethod
    def of(cls, search: LoggedSearch) -> Self:
        return model_of(
            cls,
            search,
            text=search.text or None,
            tool=search.tool_name or None,
            unmatched_words=list(search.unmatched),
        )


class SearchPage(Page[SearchShown]):
    @classmethod
    def of_searches(cls, searches: Sequence[LoggedSearch], limit: int) -> Self:
        return cls.of(searches, limit, SearchShown.of, lambda search: str(search.position))


class GapShown(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_GAP]})

    text: str = Field(
        description="The request, as it was written last. Case, punctuation and spaces do not count."
    )
    count: int = Field(description="How often it was searched without a good match.")
    last_at: Time = Field(description="Time of the last of these searches, which the other fields are about.")
    namespaces: list[str] = Field(description=NAMESPACES)
    tool_id: int | None = Field(description=TOOL_ID)
    tool: str | None = Field(description=TOOL)
    confidence: float | None = Field(description=CONFIDENCE)
    unmatched_words: list[str] = Field(description=UNMATCHED)

    @classmethod
    def of(cls, gap: Gap) -> Self:
        last = gap.last
        return model_of(
            cls,
            last,
            count=gap.count,
            last_at=last.at.isoformat(),
            tool=last.tool_name or None,
            unmatched_words=list(last.unmatched),
        )


class GapsShown(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"results": [_GAP], "days": 7, "counted": 108, "complete": True, "log": "text"}]
        }
    )

    results: list[GapShown] = Field(description="The most frequent requests without a good match.")
    days: int = Field(description="How many days back the report goes.")
    counted: int = Field(description="Number of searches without a good match that were counted.")
    complete: bool = Field(description="Whether those are all of these days; else they are the latest 100,000.")
    log: LogState = Field(
        description="What this service logs of searches now: nothing (`off`), no texts (`figures`), or `text`. "
        "The report needs texts."
    )

    @classmethod
    def of(cls, report: GapReport, days: int, keeps: SearchDetail | None) -> Self:
        gaps = [GapShown.of(gap) for gap in report.gaps]
        return cls.model_construct(
            results=gaps,
            days=days,
            counted=report.counted,
            complete=report.is_complete,
            log="off" if keeps is None else keeps.value,
        )
