"""What the core asks of the world about where items come from: what changed in them, and who is taking them in."""

from collections.abc import Sequence
from typing import Protocol

from toolscript.model.catalog_contents import CatalogItem, ItemFilter, ItemSource
from toolscript.model.changes import ChangeDetails, ChangeState, ItemChange
from toolscript.model.items import JsonObject
from toolscript.model.jobs import JobProgress, JobState, SyncJob


class CatalogContents(Protocol):
    """What the catalog holds, a page at a time, and how it leaves. `Catalog` writes it."""

    async def sources(self, after: str, limit: int) -> Sequence[ItemSource]:
        """The next sources in order of name; fewer than `limit` only at the end."""

    async def source(self, name: str) -> ItemSource | None: ...
    async def remove_source(self, name: str, limit: int) -> int:
        """Removes at most `limit` items of a source; answers how many. Fewer: the source is now gone.

        They leave as `Catalog.remove` has it: what people decided about them still holds if they come back.
        """

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        """The next items in order of id, without schemas; fewer than `limit` only at the end."""

    async def find(self, item_id: int) -> CatalogItem:
        """Refused with NotFound when there is none, or none any more."""

    async def remove(self, item_id: int) -> bool:
        """False when it had left before. Refused with NotFound when it never was there."""


class ItemChanges(Protocol):
    """Definitions that changed after they were seen. `Catalog.store` writes them; people decide on held ones."""

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        """The latest first; `before` is the last one seen. Fewer than `limit` only at the end."""

    async def find(self, change_id: int) -> ChangeDetails:
        """Refused with NotFound when there is none."""

    async def approve(self, change_id: int, by: str) -> ItemChange:
        """The held definition comes into force: a new version, dirty, to be classified unless by hand. Audited.

        Refused with Conflict when it is not held, or another definition came into force meanwhile.
        """

    async def reject(self, change_id: int, by: str) -> ItemChange:
        """The definition in force stays; the rejected one is not asked about again. Audited."""


class SyncJobs(Protocol):
    """Syncs that were asked for. An open one of which nothing is heard for a while reads as interrupted."""

    async def add(self, source: str) -> SyncJob:
        """A job that is queued. Only the latest MOST_JOBS_KEPT are kept, and those that are open."""

    async def start(self, job_id: int) -> None: ...
    async def beat(self, progress: Sequence[JobProgress]) -> None:
        """These jobs live, and have come so far."""

    async def finish(
        self, job_id: int, state: JobState, report: JsonObject | None = None, error: str | None = None
    ) -> None: ...
    async def interrupt(self, job_ids: Sequence[int]) -> None:
        """Those of these jobs that are open will not be finished."""

    async def find(self, job_id: int) -> SyncJob:
        """Refused with NotFound when there is none."""

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        """The latest first; fewer than `limit` only at the end."""
