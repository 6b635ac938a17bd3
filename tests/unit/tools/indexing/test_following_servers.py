"""The catalog follows servers for as long as somebody likes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.unit.tools.indexing.test_server_items import PickyCatalog, specs, tool
from toolscript.core.items import StoreReport
from toolscript.testing import MemoryToolServers
from toolscript.tools.catalog.items import FollowingServers, ServerReport, ServerSync

pytestmark = pytest.mark.requirement("SK-009", "SK-010")

SOON = 20.0


class Scene:
    def __init__(self) -> None:
        self.servers = MemoryToolServers({"files": [tool("files", "read")]})
        self.catalog = PickyCatalog()
        self.reports: list[ServerReport] = []
        self._heard = asyncio.Event()

    def hear(self, report: ServerReport) -> None:
        self.reports.append(report)
        self._heard.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not holds():
                self._heard.clear()
                await self._heard.wait()

    async def next_report(self) -> ServerReport:
        await self.until(lambda: bool(self.reports))
        return self.reports.pop(0)

    def stored(self) -> dict[str, str]:
        known = [stored for stored in self.catalog._by_key.values() if stored.is_active]
        return {stored.item.name: stored.item.description for stored in known}


@asynccontextmanager
async def following() -> AsyncIterator[Scene]:
    scene = Scene()
    scene.servers.use(specs("files"))
    following = FollowingServers(ServerSync(scene.catalog, scene.servers), scene.hear, again_seconds=0.01)
    task = asyncio.create_task(following.run())
    try:
        yield scene
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def stored_of(report: ServerReport) -> StoreReport:
    assert report.taken is not None, report.failed
    return report.taken.stored


async def test_what_is_there_is_taken_and_what_changes_later_too() -> None:
    async with following() as scene:
        assert stored_of(await scene.next_report()) == StoreReport(added=1)
        scene.servers.put("files", tool("files", "read", "Reads."), tool("files", "move"))
        assert stored_of(await scene.next_report()) == StoreReport(added=1, changed=1)
        scene.servers.put("files", tool("files", "move"))
        report = await scene.next_report()
        assert report.taken is not None
        assert report.taken.removed == 1
        assert scene.stored() == {"move": ""}


async def test_a_server_that_falls_is_told_of_once_keeps_its_items_and_is_told_of_when_it_is_back() -> None:
    async with following() as scene:
        await scene.next_report()
        scene.servers.fall("files", "it died")
        assert await scene.next_report() == ServerReport("files", failed="it died")
        scene.servers.fall("files", "it died")
        scene.servers.put("files", tool("files", "read"))
        assert stored_of(await scene.next_report()) == StoreReport(unchanged=1), "the second fall was told, too"
        assert scene.stored() == {"read": ""}


async def test_what_comes_again_as_it_was_is_not_told_of() -> None:
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
            scene.catalog.asked_in_vain.clear()
            await asyncio.wait_for(scene.catalog.asked_in_vain.wait(), SOON)
        assert scene.stored() == {"read": ""}
        scene.catalog.down = False
        assert stored_of(await scene.next_report()) == StoreReport(added=1, unchanged=1)
        assert scene.stored() == {"read": "", "new": ""}
