"""The log of tool searches: GET /api/v1/tool_searches, and the requests without a good match below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.params import Depends

from toolscript.core.errors import SetupError
from toolscript.core.web.cursors import decode_key
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import USUAL, Cursor, Limit
from toolscript.core.web.request_context import API_PREFIX
from toolscript.core.web.routers import NO_CHECKS, api_router
from toolscript.tools.http.access import Narrowed
from toolscript.tools.model.search_log import MAX_DAYS, MAX_GAPS, SearchDetail, SearchFilter, SearchPosition
from toolscript.tools.ports import RecordSearch, SearchLog
from toolscript.tools.schemas.search_log import GapsShown, SearchPage

USUAL_DAYS, USUAL_GAPS = 7, 20

Days = Annotated[int, Query(ge=1, le=MAX_DAYS, description="How many days back, of 24 hours each.")]
GoodMatch = Annotated[
    bool | None, Query(description="Only searches with a good match, or only those without one. Default: all.")
]
MaxGaps = Annotated[int, Query(ge=1, le=MAX_GAPS, description="Maximum number of requests.")]


@dataclass(frozen=True)
class SearchLogService:
    """`keeps` is None when nothing is logged; `record` logs a search that came over HTTP."""

    log: SearchLog
    keeps: SearchDetail | None = None
    record: RecordSearch | None = None


def search_log_routes(service: SearchLogService | None, checks: Sequence[Depends] = NO_CHECKS) -> APIRouter:
    router = api_router(f"{API_PREFIX}/tool_searches", "tool_searches", checks)

    @router.get("", responses=documented(401, 403, 422, 503), summary="List logged tool searches, latest first")
    async def list_tool_searches(
        seen: Narrowed,
        days: Days = USUAL_DAYS,
        good_match: GoodMatch = None,
        cursor: Cursor = "",
        limit: Limit = USUAL,
    ) -> SearchPage:
        """Searches in namespaces that the client does not see are left out, also if they were in others, too."""
        before = SearchPosition.parse(decode_key(cursor, SearchPosition.parse))
        where = SearchFilter(_since(days), good_match)
        return SearchPage.of_searches(
            await _opened(service).log.within(seen).page(where, before, limit + 1), limit
        )

    @router.get(
        "/gaps",
        responses=documented(401, 403, 422, 503),
        summary="The most frequent requests without a good match",
    )
    async def list_gaps(seen: Narrowed, days: Days = USUAL_DAYS, limit: MaxGaps = USUAL_GAPS) -> GapsShown:
        """What the catalog lacks, or calls by another name: a synonym may help. Needs a log that keeps texts.

        The top of a count over the days, and so without pages: each page would count all of them again.
        """
        opened = _opened(service)
        return GapsShown.of(await opened.log.within(seen).gaps(_since(days), limit), days, opened.keeps)

    return router


def _opened(service: SearchLogService | None) -> SearchLogService:
    if service is None:
        raise SetupError("this service has no log of searches", hint="run `toolscript serve` with a catalog")
    return service


def _since(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)
