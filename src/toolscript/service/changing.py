"""changes: what people see of definitions that changed, and what they decide about held ones."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from toolscript.adapters.postgres import PostgresItemChanges
from toolscript.model.changes import ChangeDetails, ChangeState, ItemChange
from toolscript.ports import ItemChanges
from toolscript.service.catalog_alone import open_pool
from toolscript.settings.service import load_settings

T = TypeVar("T")


def list_changes(*, before: int | None, limit: int, state: ChangeState | None) -> Sequence[ItemChange]:
    return _ask(lambda changes: changes.page(before, limit, state))


def find_change(change_id: int) -> ChangeDetails:
    return _ask(lambda changes: changes.find(change_id))


def decide_change(change_id: int, *, approve: bool, by: str) -> ItemChange:
    return _ask(lambda changes: (changes.approve if approve else changes.reject)(change_id, by))


def _ask(action: Callable[[ItemChanges], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_pool(load_settings()) as pool:
            return await action(PostgresItemChanges(pool))

    return asyncio.run(run())
