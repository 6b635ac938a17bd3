"""`toolscript skills` as a person uses it, on the real engines."""

import asyncio
import getpass
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run_here
from tests.unit.tools.skills_http.builders import suggest
from toolscript.server.stores import open_stores

pytestmark = pytest.mark.requirement("SK-001")

NO_MODEL = {"TOOLSCRIPT_EMBEDDING_MODEL": "/nowhere/at/all"}


class CommandLine:
    """`toolscript skills ...` with the environment of one installation."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.environment = installation.environment

    def __call__(self, *arguments: str, code: int = 0, extra: dict[str, str] | None = None) -> Any:
        """Return its JSON output."""
        done = run_here({**self.environment, **(extra or {})}, "skills", *arguments, "--json", code=code)
        return json.loads(done.stderr.splitlines()[-1] if code else done.stdout)

    def text(self, *arguments: str, code: int = 0, standard_input: str = "") -> tuple[str, str]:
        done = run_here(self.environment, "skills", *arguments, code=code, standard_input=standard_input)
        return done.stdout, done.stderr

    def suggest(self, name: str, *items: str, description: str = "") -> int:
        async def ask() -> int:
            async with open_stores(self._installation.settings) as stores:
                return await suggest(stores, name, *items, description=description)

        return asyncio.run(ask())

    def item(self, name: str) -> int:
        async def find() -> int:
            async with open_stores(self._installation.settings) as stores:
                stored_items = await stores.catalog.items(
                    [version.id for version in await stores.catalog.scan(0, 1000)]
                )
                return next(stored.id for stored in stored_items if stored.item.name == name)

        return asyncio.run(find())


@pytest.fixture
def skills(installed: Installation) -> CommandLine:
    return CommandLine(installed)


def ids(listed: dict[str, Any]) -> list[str]:
    return [skill["id"] for skill in listed["results"]]


def written(path: Path, skills: Sequence[dict[str, object]]) -> str:
    path.write_text(json.dumps(skills))
    return str(path)


def test_a_skill_is_added_changed_shown_deactivated_and_activated(skills: CommandLine) -> None:
    words = ("--keyword", "lead", "--keyword", "deal", "--example", "add_lead", "--domain", "sales")
    added = skills("add", "crm", "--name", "CRM", "--description", "Customers", *words, "--by", "ann")
    assert (added["keywords"], added["examples"], added["parent_domain"]) == (
        ["lead", "deal"],
        ["add_lead"],
        "sales",
    )
    assert added["routing"] == "done"
    changed = skills("edit", "crm", "--description", "Customers and deals", "--keyword", "", "--domain", "")
    assert (changed["description"], changed["keywords"], changed["parent_domain"]) == (
        "Customers and deals",
        [],
        None,
    )
    assert changed["examples"] == ["add_lead"]
    ended = skills("deactivate", "crm")
    assert (ended["is_active"], ended["routing"]) == (False, "done")
    assert "crm" not in ids(skills("list"))
    assert "crm" in ids(skills("list", "--inactive"))
    assert skills("activate", "crm")["is_active"] is True
    out, _ = skills.text("show", "crm", "--limit", "3")
    assert "description: Customers and deals" in out
    actors = [(entry["actor"], entry["action"]) for entry in skills("audit", "--limit", "4")["results"]]
    me = getpass.getuser()
    assert actors == [(me, "skill.activate"), (me, "skill.deactivate"), (me, "skill.change"), ("ann", "skill.add")]


def test_refusals_name_the_field_and_end_with_code_2(skills: CommandLine) -> None:
    assert skills("add", "Big Id", "--name", "x", code=2)["error"]["details"]["field"] == "id"
    assert skills("add", "search", "--name", "x", code=2)["error"]["details"]["field"] == "id"
    assert skills("show", "nowhere", code=2)["error"]["code"] == "NOT_FOUND"
    assert "nothing to change" in skills("edit", "nowhere", code=2)["error"]["message"]
    _, err = skills.text("assign", "1", code=2)
    assert "--none" in err


def test_an_exported_taxonomy_can_be_imported_and_changes_nothing(skills: CommandLine, tmp_path: Path) -> None:
    skills("add", "exported", "--name", "Exporté ☃", "--keyword", "one")
    file = tmp_path / "skills.json"
    skills.text("export", str(file))
    printed, _ = skills.text("export")
    assert printed == file.read_text("utf-8")
    assert "exported" in [skill["id"] for skill in json.loads(printed)]
    again = skills("import", str(file))
    assert (again["added"], again["changed"], again["deactivated"]) == ([], [], [])
    assert again["unchanged"] == len(json.loads(printed))


def test_an_import_adds_changes_and_replaces(skills: CommandLine, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": "one", "name": "One"}, {"id": "two", "name": "Two"}]
    file = written(tmp_path / "skills.json", rows)
    first = skills("import", file)
    assert (first["added"], first["routing"]) == (["one", "two"], "done")
    rows[1]["name"] = "Zwei"
    written(tmp_path / "skills.json", rows)
    done = skills("import", file, "--replace")
    assert (done["added"], done["changed"]) == ([], ["two"])
    assert ids(skills("list")) == ["one", "two"]
    assert set(done["deactivated"]) == set(ids(skills("list", "--inactive"))) - {"one", "two"}


def test_a_file_with_one_wrong_skill_is_refused_as_a_whole(skills: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "skills.json", [{"id": "fine", "name": "Fine"}, {"id": "Wrong", "name": "Wrong"}])
    _, err = skills.text("import", file, code=2)
    assert "skill 2: id cannot be 'Wrong'" in err
    assert "fine" not in ids(skills("list", "--inactive"))
    assert "cannot read" in skills("import", str(tmp_path / "none.json"), code=2)["error"]["message"]


@pytest.mark.requirement("SK-008")
def test_a_person_assigns_an_item_to_skills_and_releases_it(skills: CommandLine) -> None:
    skills("add", "hand", "--name", "By hand")
    item = str(skills.item("readFile"))
    assigned = skills("assign", item, "hand", "--by", "ann")
    assert [(skill["skill_id"], skill["source"]) for skill in assigned["skills"]] == [("hand", "human")]
    marked = skills("reclassify")["marked"]
    run_here(skills.environment, "worker", "--drain")
    assert skills("of", item) == assigned
    tools = skills("show", "hand", "--limit", "5")["tools"]
    assert (int(item), "human") in [(tool["id"], tool["source"]) for tool in tools]
    skills("release", item)
    assert skills("reclassify")["marked"] == marked + 1
    assert skills("assign", item, "--none")["skills"] == []


def test_only_items_of_a_skill_or_a_source_are_reclassified(skills: CommandLine) -> None:
    skills("add", "lonely", "--name", "Lonely")
    assert skills("reclassify", "--skill", "lonely") == {"marked": 0}
    assert skills("reclassify", "--classifier", "llm") == {"marked": 0}
    assert skills("reclassify", "--skill", "nowhere", code=2)["error"]["code"] == "NOT_FOUND"


@pytest.mark.requirement("SK-007")
def test_a_rebuild_finds_correct_centroids(skills: CommandLine) -> None:
    rebuilt = skills("rebuild")
    assert (rebuilt["mended"], rebuilt["largest_drift"]) == ([], 0.0)
    assert rebuilt["skills"] == len(ids(skills("list", "--inactive")))
    assert skills("rebuild", "nowhere", code=2)["error"]["code"] == "NOT_FOUND"


@pytest.mark.requirement("SK-006")
def test_suggestions_are_listed_shown_and_decided_without_a_terminal(skills: CommandLine) -> None:
    skills("add", "post", "--name", "Post", "--description", "Send and read email messages")
    suggested = (("Mail rooms", "create_event"), ("Nonsense", "write_file"), ("Email", "send_mail"))
    first, second, third = (skills.suggest(name, item, description="Messages") for name, item in suggested)
    listed = skills("suggestions")
    assert {first, second, third} <= {suggestion["id"] for suggestion in listed["results"]}
    evidence = skills("suggestion", str(third))
    assert [item["name"] for item in evidence["tools"]] == ["send_mail"]
    assert "post" in [near["id"] for near in evidence["nearest"]]
    approved = skills("approve", str(first), "--id", "rooms", "--keyword", "room", "--by", "ann")
    assert (approved["state"], approved["skill_id"], approved["reviewed_by"]) == ("approved", "rooms", "ann")
    assert skills("show", "rooms")["keywords"] == ["room"]
    assert skills("reject", str(second))["reviewed_by"] == getpass.getuser()
    assert skills("merge", str(third), "post")["skill_id"] == "post"
    assert skills("merge", str(third), "post", code=2)["error"]["details"]
    states = {
        suggestion["id"]: suggestion["state"] for suggestion in skills("suggestions", "--state", "all")["results"]
    }
    assert [states[number] for number in (first, second, third)] == ["approved", "rejected", "merged"]


@pytest.mark.requirement("SK-006")
def test_a_review_without_a_terminal_is_refused_with_the_commands_that_need_none(skills: CommandLine) -> None:
    _, err = skills.text("review", code=2, standard_input="a\n")
    assert "terminal" in err
    assert "skills approve|reject|merge" in err


@pytest.mark.requirement("SK-006")
def test_text_of_a_language_model_cannot_control_the_terminal(skills: CommandLine) -> None:
    number = skills.suggest("Evil\x1b[2J", "send_mail", description="a\x07b\u202ec")
    for arguments in (("suggestions",), ("suggestion", str(number)), ("audit",)):
        out, _ = skills.text(*arguments)
        assert all(char.isprintable() or char == "\n" for char in out)
    skills("reject", str(number))


def test_without_a_model_a_change_is_stored_with_a_hint_what_to_run(skills: CommandLine) -> None:
    added = skills("add", "modelless", "--name", "Modelless", extra=NO_MODEL)
    assert added["routing"] == "pending"
    assert "modelless" in ids(skills("list"))


def test_progress_and_hints_stay_out_of_the_result(skills: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path / "skills.json", [{"id": "noted", "name": "Noted"}])
    out, err = skills.text("import", file)
    assert out == "1 added, 0 changed, 0 unchanged, 0 deactivated\n"
    assert "toolscript skills reclassify" in err
    _, err = skills.text("reclassify")
    assert "toolscript worker --drain" in err
