"""What was removed over HTTP is in no answer from then on, with no worker at all, on the real engines."""

from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest

from tests.conftest import Installation
from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.items import Item, ItemKind
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer

API = "/api/v1"
SEARCH_TYPES = ("hybrid", "semantic", "keyword")
ITEMS = [
    Item(f"{kind}{n}", kind, "beehive", f"{kind}_hive_{n}", f"Opens hive {n} and counts its bees.")
    for kind, n in product(ItemKind, range(2))
]


@pytest.fixture
async def removing(installation: Installation) -> AsyncIterator[Searching]:
    async with open_index_writer(installation.settings) as writer:
        await writer.stores.catalog.store("hives", ITEMS)
        await writer.worker(silent).drain()
    async with serving(installation) as service:
        yield Searching(service)


async def shown(searching: Searching) -> set[str]:
    """Return the names in the answers of all strategies and retrievers."""
    found: set[str] = set()
    for strategy, by in product(STRATEGIES, SEARCH_TYPES):
        more: dict[str, Any] = {"strategy": strategy, "search_type": by, "skill_threshold": 0.0, **ALL}
        answer = await searching.search("open a hive and count its bees", **more)
        found |= {tool["name"] for tool in (*answer["tools"], *answer["metadata"]["near_misses"])}
        assert answer["metadata"]["degraded"] == []
    return found


@pytest.mark.states("S0-045")
@pytest.mark.requirement("SK-009")
async def test_a_removed_item_is_in_no_answer_from_its_removal_on_without_a_worker(removing: Searching) -> None:
    service = removing.service
    left = {item.name for item in ITEMS}
    assert await shown(removing) == left
    for id_, stored in {item.id: item for item in (await service.items("hives")).values()}.items():
        answer = await service.client.delete(f"{API}/tools/{id_}")
        assert answer.status_code == 204
        left.remove(stored.item.name)
        assert await shown(removing) == left
        if len(left) == 3:
            break
    await service.until_over((await service.ask("DELETE", f"{API}/sources/hives", 202))["id"])
    assert await shown(removing) == set()
