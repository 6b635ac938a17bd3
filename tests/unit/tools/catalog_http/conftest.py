"""A service in its own process, with a small catalog in a few skills, and the command line as its client."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here, serving
from toolscript.core.settings.service import Settings
from toolscript.server.stores import open_stores

EVIL = "\x1b[2Jgone\x07\u202e [bold]not bold[/bold]\nsecond line"
SKILLS = {"files": "Reads and writes files on a disk", "dates": "Plans meetings in a calendar"}
ITEMS: list[tuple[str | None, dict[str, object]]] = [
    (
        "files",
        {
            "server": "disk",
            "name": "read_file",
            "description": "Read the contents of a file from a disk",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    ),
    ("files", {"server": "disk", "name": "write_file", "description": "Write text into a file on a disk"}),
    ("files", {"server": "disk", "name": "summary", "type": "prompt", "description": "Summarise a file"}),
    ("dates", {"server": "calendar", "name": "create_event", "description": "Schedule a meeting with people"}),
    ("dates", {"server": "evil", "name": "wipe\x1b[2J_planet", "description": f"Wipe a planet {EVIL}"}),
    (None, {"server": "stray", "name": "copy_file", "description": "Copy a file to another folder"}),
]


class CommandLine:
    """`toolscript tools ...` for one service."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *arguments: str, code: int = 0, **more: str) -> tuple[str, str]:
        """Return standard output and standard error."""
        done = run_here({"TOOLSCRIPT_SERVICE_URL": self.url, **more}, "tools", *arguments, code=code)
        return done.stdout, done.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code)[0])


@pytest.fixture(scope="session")
def skilled(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
        tempfile.TemporaryDirectory() as folder,
    ):
        mine = fresh.environment
        skills = [
            {"id": skill_id, "name": skill_id.title(), "description": description}
            for skill_id, description in SKILLS.items()
        ]
        (Path(folder) / "skills.json").write_text(json.dumps(skills), "utf-8")
        run_here(mine, "skills", "import", str(Path(folder) / "skills.json"))
        catalog = catalog_files.write(Path(folder) / "items.jsonl", [item for _, item in ITEMS])
        run_here(mine, "sync", str(catalog))
        for number, (skill, _) in zip(_item_ids(fresh), ITEMS, strict=True):
            run_here(mine, "skills", "assign", str(number), skill or "--none")
        run_here(mine, "worker", "--drain")
        yield fresh


def _item_ids(installation: Installation) -> list[int]:
    """Return the ids of the items, in the order of `ITEMS`."""

    async def find() -> list[int]:
        async with open_stores(installation.settings) as stores:
            stored_items = await stores.catalog.items(
                [version.id for version in await stores.catalog.scan(0, 1000)]
            )
            ids = {stored.item.name: stored.id for stored in stored_items}
            return [ids[str(item["name"])] for _, item in ITEMS]

    return asyncio.run(find())


@pytest.fixture(scope="session")
def service_url(skilled: Installation) -> Iterator[str]:
    with serving(skilled.environment) as url:
        yield url


@pytest.fixture
def tools(service_url: str) -> CommandLine:
    return CommandLine(service_url)
