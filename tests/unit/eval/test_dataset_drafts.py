"""A draft in files: their content, and what they never overwrite."""

import json
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.items import Item, ItemKind
from toolscript.tools.catalog.files import read_items
from toolscript_eval.dataset import DatasetQuery, Draft, DraftedQuery, write_draft

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
ITEMS = (
    Item("files__read", ItemKind.TOOL, "files", "read", "Lies eine Datei – sofort.", "Files.", SCHEMA, SCHEMA),
    Item("disk__read", ItemKind.TOOL, "disk", "read"),
)
BOTH = frozenset({"files__read", "disk__read"})
DRAFT = Draft(
    ITEMS,
    (
        DraftedQuery("exact", DatasetQuery("exact-001", "read", dict.fromkeys(BOTH, 1), (BOTH,))),
        DraftedQuery("unanswerable", DatasetQuery("unanswerable-001", "order a pizza"), "check this"),
    ),
)


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_items_are_read_back_as_they_were(tmp_path: Path) -> None:
    write_draft(DRAFT, tmp_path / "new" / "folder")
    assert tuple(read_items(tmp_path / "new" / "folder" / "tools.jsonl")) == ITEMS


def test_a_query_has_its_kind_its_steps_and_a_mark_to_check_it(tmp_path: Path) -> None:
    write_draft(DRAFT, tmp_path)
    first, second = rows(tmp_path / "queries.jsonl")
    assert first == {
        "id": "exact-001",
        "text": "read",
        "kind": "exact",
        "gold_groups": [["disk__read", "files__read"]],
        "check": True,
    }
    assert (second["gold_groups"], second["check"], second["note"]) == ([], True, "check this")


def test_letters_stay_readable_and_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    write_draft(DRAFT, tmp_path)
    assert "Datei – sofort" in (tmp_path / "tools.jsonl").read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["queries.jsonl", "tools.jsonl"]


@pytest.mark.parametrize("name", ["tools.jsonl", "queries.jsonl"])
def test_existing_files_are_overwritten_only_with_force(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("edited by hand", "utf-8")
    with pytest.raises(InvalidRequest, match=name) as refused:
        write_draft(DRAFT, tmp_path)
    assert "--force" in refused.value.hint
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [(name, "edited by hand")]
    write_draft(DRAFT, tmp_path, overwrite=True)
    assert len(rows(tmp_path / "queries.jsonl")) == 2


def test_a_dataset_with_its_own_qrels_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("q\tt\t1\n", "utf-8")
    with pytest.raises(InvalidRequest, match=r"qrels\.tsv"):
        write_draft(DRAFT, tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["qrels.tsv"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", "utf-8")
    with pytest.raises(InvalidRequest, match="not a folder"):
        write_draft(DRAFT, tmp_path / "file")
    with pytest.raises(SetupError, match="cannot write"):
        write_draft(DRAFT, tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text("utf-8") == "mine"
