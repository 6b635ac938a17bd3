"""The log of tool searches in the service: its days are prepared and dropped in the background.

A service that logs nothing drops old days, too: what was logged before does not stay for ever.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar

from toolscript.core.errors import ToolscriptError
from toolscript.core.settings.service import Settings
from toolscript.server.catalog_store import open_catalog_pool
from toolscript.server.settings import load_settings
from toolscript.tools.model.search_log import SearchDetail
from toolscript.tools.ports import SearchLog
from toolscript.tools.postgres.search_log import PostgresSearchLog

EVERY_SECONDS = 3600.0
MAX_SECONDS = 30.0

T = TypeVar("T")

logger = logging.getLogger(__name__)


@asynccontextmanager
async def keeping_search_log(
    settings: Settings, log: SearchLog, every_seconds: float = EVERY_SECONDS
) -> AsyncIterator[None]:
    async def keep() -> None:
        while True:
            await keep_search_log(log, settings.tool_search_log_days, ahead=bool(settings.tool_search_log))
            await asyncio.sleep(every_seconds)

    task = asyncio.create_task(keep())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def keep_search_log(log: SearchLog, days: int, *, ahead: bool) -> None:
    """Prepare the days to come, and drop old ones. What fails is tried again at the next time."""
    try:
        async with asyncio.timeout(MAX_SECONDS):
            await log.keep(datetime.now(UTC).date(), days, ahead=ahead)
    except (ToolscriptError, TimeoutError) as error:
        reason = getattr(error, "message", "") or type(error).__name__
        logger.warning("days of the search log were not kept", extra={"part": "catalog", "reason": reason})
    except Exception:
        logger.exception("days of the search log cannot be kept")


def with_search_log(action: Callable[[SearchLog], Awaitable[T]]) -> T:
    """Run a command on the log: PostgreSQL alone."""

    async def run() -> T:
        async with open_catalog_pool(load_settings()) as pool:
            return await action(PostgresSearchLog(pool))

    return asyncio.run(run())


def search_log_detail() -> SearchDetail | None:
    """Return what the settings of this installation log of searches; None for nothing."""
    kept = load_settings().tool_search_log
    return SearchDetail(kept) if kept else None
