"""Wiring of the commands on rules: PostgreSQL alone. Running services read the rules again within a second."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from toolscript.server.catalog_store import open_catalog_pool
from toolscript.server.settings import load_settings
from toolscript.tools.ports import CurationRules
from toolscript.tools.postgres.curation import PostgresCurationRules

T = TypeVar("T")


def with_rules(action: Callable[[CurationRules], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_catalog_pool(load_settings()) as pool:
            return await action(PostgresCurationRules(pool))

    return asyncio.run(run())
