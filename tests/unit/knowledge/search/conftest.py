"""A library with two sources, on the doubles and on the engine."""

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.conftest import drop_collections
from tests.unit.knowledge.search.builders import GUIDE, PAPER, Shelf, open_shelf
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.settings.service import Settings
from toolscript.testing import MemoryIndexes

LAYOUT = Layout(
    keyword_fields=("source_id", "type", "topics"),
    bool_fields=(),
    broad=frozenset(),
    counted_fields=(),
    counted_empty="",
    engine_idf=False,
)


@pytest.fixture(params=["memory", "qdrant"])
async def shelf(request: pytest.FixtureRequest) -> AsyncIterator[Shelf]:
    if request.param == "memory":
        two = MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False)
        yield await filled(await open_shelf(*two))
        return
    engines: Settings = request.getfixturevalue("engines")
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        names = f"{alias}__c", f"{alias}__e"
        yield await filled(await open_shelf(*(QdrantIndexes(connected, name, LAYOUT) for name in names)))
        await drop_collections(connected, alias)


async def filled(shelf: Shelf) -> Shelf:
    bees = await shelf.add(*GUIDE, topics=("bees",))
    await shelf.add(*PAPER, topics=("steel", "spring"))
    await shelf.extract(bees[1], "method", "Feeding bees", "Give them sugar before winter", ("bees", "food"))
    await shelf.extract(bees[0], "warning", "Damp hives", "A wet hive dies", ("bees",))
    return shelf
