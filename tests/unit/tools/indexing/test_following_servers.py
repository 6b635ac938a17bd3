"""Continuous sync of servers into the catalog."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.doubles import MemoryToolServers
from tests.unit.tools.indexing.test_server_items import PickyCatalog, specs, tool
from toolscript.core.items import StoreReport
from toolscript.tools.catalog.items import ContinuousSync, ServerReport, ServerSync

pytestmark = pytest.mark.requirement("SK-009", "SK-010")

SOON = 20.0


class Scene:
    def __init__(self) -> None:
        self.servers = MemoryToolServers({"files": [tool("files", "read")]})
        self.catalog = PickyCatalog()
        self.reports: list[ServerReport] = []
        self._reported = asyncio.Event()

    def on_report(self, report: ServerReport) -> None:
        self.reports.append(report)
        self._reported.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not holds():
                self._reported.clear()
                await self._reported.wait()

    async def next_report(self) -> ServerReport:
        await self.until(lambda: bool(self.reports))
        return self.reports.pop(0)

    def stored(self) -> dict[str, str]:
        active = [stored for stored in self.catalog._by_key.values() if stored.is_active]
        return {stored.item.name: stored.item.description for stored in active}


@asynccontextmanager
async def following() -> AsyncIterator[Scene]:
    scene = Scene()
    scene.servers.use(specs("files"))
    following = ContinuousSync(ServerSync(scene.catalog, scene.servers), scene.on_report, again_seconds=0.01)
    task = asyncio.create_task(following.run())
    try:
        yield scene
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stored_of(report: ServerReport) -> StoreReport:
    assert report.taken is not None, report.failed
    return report.taken.stored


async def test_items_are_imported_at_the_start_and_on_later_changes() -> None:
    async with following() as scene:
        assert stored_of(await scene.next_report()) == StoreReport(added=1)
        scene.servers.put("files", tool("files", "read", "Reads."), tool("files", "move"))
        assert stored_of(await scene.next_report()) == StoreReport(added=1, changed=1)
        scene.servers.put("files", tool("files", "move"))
        report = await scene.next_report()
        assert report.taken is not None
        assert report.taken.removed == 1
        assert scene.stored() == {"move": ""}


async def test_a_server_that_fails_keeps_its_items_and_is_reported_once_and_again_when_it_is_back() -> None:
    async with following() as scene:
        await scene.next_report()
        scene.servers.fall("files", "it died")
        assert await scene.next_report() == ServerReport("files", failed="it died")
        scene.servers.fall("files", "it died")
        scene.servers.put("files", tool("files", "read"))
        assert stored_of(await scene.next_report()) == StoreReport(unchanged=1), (
            "the second failure was reported, too"
        )
        assert scene.stored() == {"read": ""}


async def test_an_unchanged_server_is_not_reported_again() -> None:
    async with following() as scene:
        await scene.next_report()
        scene.servers.put("files", tool("files", "read"))
        scene.servers.put("files", tool("files", "read"), tool("files", "new"))
        assert stored_of(await scene.next_report()) == StoreReport(added=1, unchanged=1)


async def test_while_the_catalog_is_down_nothing_is_lost() -> None:
    async with following() as scene:
        await scene.next_report()
        scene.catalog.down = True
        scene.servers.put("files", tool("files", "read"), tool("files", "new"))
        for _ in range(2):
            scene.catalog.write_failed.clear()
            await asyncio.wait_for(scene.catalog.write_failed.wait(), SOON)
        assert scene.stored() == {"read": ""}
        scene.catalog.down = False
        assert stored_of(await scene.next_report()) == StoreReport(added=1, unchanged=1)
        assert scene.stored() == {"read": "", "new": ""}
