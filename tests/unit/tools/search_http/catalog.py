"""The catalog for tests of routed searches: the golden tools, and items and skills for rare cases."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conftest import Installation
from toolscript.core.item_json import item_from_json
from toolscript.core.items import Item, StoredItem
from toolscript.core.taxonomy import Skill
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.server.skills import load_default_skills
from toolscript.server.stores import Stores
from toolscript.tools.catalog.files import read_items
from toolscript.tools.catalog.items import import_items

GOLDEN = Path(__file__).parents[3] / "golden" / "tools.jsonl"

HIVE_SCHEMA = {"type": "object", "properties": {"hive": {"type": "string"}}}

# `id` is the key within the source: items of the same name and server stay separate.
OWN: list[dict[str, Any]] = [
    {
        "id": "harvest",
        "server": "hivekeeper",
        "name": "plan_honey_harvest",
        "description": "Plan when the honey of a beehive is harvested",
        "input_schema": HIVE_SCHEMA,
        "output_schema": {"type": "object", "properties": {"day": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "id": "feeding",
        "server": "hivekeeper",
        "name": "feed_bees",
        "description": "Feed the bees of a beehive with sugar syrup before winter",
    },
    {
        "id": "scale",
        "server": "hivekeeper",
        "name": "weigh_beehive",
        "description": "Weigh a beehive, to know how much honey its bees have made",
        "input_schema": HIVE_SCHEMA,
    },
    {
        "id": "loner",
        "server": "hivekeeper",
        "name": "smoke_beehive",
        "description": "Blow smoke into a beehive so that its bees stay calm",
        "input_schema": HIVE_SCHEMA,
    },
    {
        "id": "crane",
        "server": "paperfold",
        "name": "fold_crane",
        "description": "Fold an origami crane out of a square of paper",
        "input_schema": HIVE_SCHEMA,
    },
    *(
        {
            "id": f"bell-{twin}",
            "server": "belfry",
            "name": "ring_bell",
            "description": "Ring the bell of a church tower",
            "input_schema": HIVE_SCHEMA,
        }
        for twin in ("one", "two")
    ),
    {
        "server": "harbor_files",
        "name": "read_file",
        "kind": "prompt",
        "description": "Read a file from the local disk and explain what it says",
    },
    {
        "server": "pigeonpost",
        "name": "summarise_thread",
        "kind": "prompt",
        "description": "Summarise a thread of e-mail messages in five lines",
    },
    {
        "server": "repohub",
        "name": "review_pull_request",
        "kind": "prompt",
        "description": "Review the changes of a pull request and list what is wrong",
    },
    {
        "server": "harbor_files",
        "name": "file:///shared/readme.md",
        "kind": "resource",
        "description": "The readme file of the shared folders on the local disk",
    },
    {
        "server": "suncal",
        "name": "calendar://holidays",
        "kind": "resource",
        "description": "Public holidays as calendar events",
    },
    {
        "server": "sqlbench",
        "name": "schema://main",
        "kind": "resource",
        "description": "All tables of the main database with their columns",
    },
]

BEES = Skill("beekeeping", "Beekeeping", "Cares for bees, beehives and honey")
ORIGAMI = Skill("origami", "Origami", "Folds paper into cranes, boats and flowers")
VOLCANOES = Skill("volcanology", "Volcanology", "Volcanoes, magma chambers, lava and eruptions")

BY_HAND: dict[str, tuple[str, ...]] = {
    "plan_honey_harvest": (BEES.id,),
    "feed_bees": (BEES.id,),
    "weigh_beehive": (BEES.id,),
    "smoke_beehive": (),
    "fold_crane": (ORIGAMI.id,),
}
REMOVED = "weigh_beehive"


def stock(installation: Installation) -> None:
    """Sync and classify a catalog, then decide about some of it by hand, as people do."""
    load_default_skills(installation.settings)
    asyncio.run(_fill(installation))


async def _fill(installation: Installation) -> None:
    async with open_index_writer(installation.settings) as writer:
        stores, worker = writer.stores, writer.worker(silent)
        await import_items(stores.catalog, "golden", read_items(GOLDEN))
        await import_items(stores.catalog, "own", own_items())
        await worker.drain()
        await _decide_by_hand(stores)
        await worker.drain()
        await import_items(
            stores.catalog, "own", [item for item in own_items() if item.name != REMOVED], prune=True
        )
        await stores.taxonomy.change(replace(ORIGAMI, is_active=False), "ada")
        await worker.drain()


async def _decide_by_hand(stores: Stores) -> None:
    """Add skills after classification, so that no item is classified into them."""
    for skill in (BEES, ORIGAMI, VOLCANOES):
        await stores.taxonomy.add(skill, "ada")
    ids = await ids_by_name(stores)
    for name, skills in BY_HAND.items():
        await stores.assignments.set_by_hand(ids[name], skills, "ada")


def own_items() -> list[Item]:
    return [item_from_json(item) for item in OWN]


async def ids_by_name(stores: Stores) -> dict[str, int]:
    """Return ids by name; of items with the same name, the last one."""
    return {stored.item.name: stored.id for stored in await stored_items(stores)}


async def stored_items(stores: Stores) -> Sequence[StoredItem]:
    """Return all active items of the catalog."""
    return await stores.catalog.items([version.id for version in await stores.catalog.scan(0, 1000)])
