"""Entries of the audit for what commands change. Their actor is the logged-in user of the system."""

import asyncio
import getpass
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolscript.core.audit import ADMINISTRATORS_ONLY, Change, Counted, facts_of
from toolscript.core.errors import ToolscriptError
from toolscript.core.postgres.audit import PostgresAudit
from toolscript.core.taxonomy import Actor, AuditEntry
from toolscript.core.text import readable
from toolscript.server.catalog_store import open_catalog_pool
from toolscript.server.settings import load_settings

# Entries that an export reads at once.
PAGE = 1_000

logger = logging.getLogger(__name__)


def operator() -> Actor:
    try:
        return Actor(readable(getpass.getuser()))
    except (KeyError, OSError):
        return Actor("operator")


@contextmanager
def recorded(
    action: str,
    subject: str,
    namespace: str | None = ADMINISTRATORS_ONLY,
    *,
    counted: Counted | None = None,
    needed: bool = True,
) -> Iterator[Counted]:
    """Write the entry of what a command changed, also when it was stopped midway.

    `needed` False: without PostgreSQL, which the library does without, the log has the entry.
    """
    counted = counted or Counted()
    try:
        yield counted
    finally:
        if counted.count:
            change = Change(operator(), action, readable(subject), namespace, counted.count, counted.details)
            _write(change, needed=needed)


def _write(change: Change, *, needed: bool) -> None:
    async def write() -> None:
        async with open_catalog_pool(load_settings()) as pool:
            await PostgresAudit(pool).write(change)

    try:
        asyncio.run(write())
    except ToolscriptError as error:
        if needed:
            raise
        logger.error("no entry in the audit", extra={**facts_of(change), "reason": error.message})


def each_entry(after: int, write: Callable[[int, AuditEntry], None]) -> int:
    """Pass on the entries after this number, the earliest first; return how many."""

    async def run() -> int:
        number, count = after, 0
        async with open_catalog_pool(load_settings()) as pool:
            audit = PostgresAudit(pool)
            while page := await audit.after(number, PAGE):
                for number, entry in page:
                    write(number, entry)
                count += len(page)
        return count

    return asyncio.run(run())
