"""`toolscript migrate` loads the default taxonomy, once, into an empty installation."""

import asyncio
import json
from importlib.resources import files

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run_here
from toolscript.core.items import Item, ItemKind
from toolscript.server.stores import open_stores

pytestmark = pytest.mark.requirement("SK-001")

SHIPPED = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))


def listed(installation: Installation) -> list[str]:
    done = run_here(installation.environment, "skills", "list", "--inactive", "--json")
    return [skill["id"] for skill in json.loads(done.stdout)["results"]]


def test_an_empty_taxonomy_gets_the_default_skills_and_keeps_later_changes_of_them(
    installation: Installation,
) -> None:
    mine = installation.environment
    err = run_here(mine, "migrate").stderr
    assert f"{len(SHIPPED)} skills loaded" in err
    assert "reclassify" not in err
    assert listed(installation) == sorted(row["id"] for row in SHIPPED)
    run_here(mine, "skills", "edit", SHIPPED[0]["id"], "--name", "Renamed")
    assert "loaded" not in run_here(mine, "migrate").stderr
    out = run_here(mine, "skills", "show", SHIPPED[0]["id"], "--json").stdout
    assert json.loads(out)["name"] == "Renamed"


def test_a_hint_mentions_items_stored_before_the_skills(installation: Installation) -> None:
    async def store() -> None:
        async with open_stores(installation.settings) as stores:
            await stores.catalog.store("file", [Item("a", ItemKind.TOOL, "files", "read")])

    asyncio.run(store())
    assert "toolscript skills reclassify" in run_here(installation.environment, "migrate").stderr


def test_migrate_with_no_skills_loads_none(installation: Installation) -> None:
    run_here(installation.environment, "migrate", "--no-skills")
    assert listed(installation) == []


def test_a_custom_taxonomy_is_left_alone(installation: Installation) -> None:
    run_here(installation.environment, "skills", "add", "mine", "--name", "Mine")
    assert "loaded" not in run_here(installation.environment, "migrate").stderr
    assert listed(installation) == ["mine"]


def test_a_schema_can_be_migrated_while_qdrant_is_down(installation: Installation) -> None:
    nowhere = {"TOOLSCRIPT_QDRANT_GRPC_PORT": "1", "TOOLSCRIPT_QDRANT_URL": "http://127.0.0.1:1"}
    assert "skills loaded" in run_here({**installation.environment, **nowhere}, "migrate").stderr


@pytest.mark.states("S3-053", "S3-054", "S3-055", "S3-057", "S3-061", "S3-062", "S3-063", "S3-064", "S3-065")
def test_calendars_files_and_queries_are_among_the_default_skills(installation: Installation) -> None:
    run_here(installation.environment, "migrate")
    out = run_here(installation.environment, "skills", "export").stdout
    shipped = {skill["id"]: skill for skill in json.loads(out)}
    assert len(shipped) == 34
    calendars, files = shipped["calendar_management"], shipped["file_operations"]
    assert calendars["name"] == "Calendars & Scheduling"
    text = f"{calendars['name']} {calendars['description']}".lower()
    assert all(word in text for word in ("calendar", "event", "scheduling", "appointment"))
    assert {"calendar", "appointment"} <= set(calendars["keywords"])
    assert files["name"] == "File Operations"
    assert all(word in files["description"].lower() for word in ("read", "write", "move", "file"))
    assert {"read_file", "write_file"} <= set(files["examples"])
    assert "read" not in files["keywords"]
    assert {"database_query", "data_analysis"} <= shipped.keys()
    assert "data_query" not in shipped
