"""A dataset is read from its folder; an error names the line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import MAX_QUERY
from toolscript_eval.dataset import read_dataset

TOOLS: Sequence[Mapping[str, object]] = [
    {"id": key, "server": "files", "name": f"{key}_file", "description": key} for key in ("read", "write")
]
QUERIES: Sequence[Mapping[str, object]] = [
    {"id": 1, "text": "look into a file", "gold_groups": [["read"], ["write", "read"]]},
    {"id": "2", "text": "the weather in Oslo", "gold_groups": []},
]


def write(path: Path, rows: Sequence[Mapping[str, object] | str]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "mine" / "tools.jsonl", TOOLS)
    write(tmp_path / "mine" / "queries.jsonl", QUERIES)
    return tmp_path / "mine"


def test_two_files_are_enough(folder: Path) -> None:
    judged = read_dataset(folder)
    assert (judged.name, judged.distractors, judged.documents) == ("mine", "", False)
    assert [item.key for item in judged.items] == ["read", "write"]
    first, second = judged.queries
    assert (first.id, first.text) == ("1", "look into a file")
    assert first.relevant == {"read": 1, "write": 1}
    assert first.steps == (frozenset({"read"}), frozenset({"read", "write"}))
    assert first.answerable
    assert not second.answerable


def test_grades_come_from_their_own_file(folder: Path) -> None:
    rows = ["query-id\titem-id\tgrade", "1\tread\t2", "1\twrite\t0", "unknown\tread\t1", "unknown\tgone\t1", ""]
    write(folder / "qrels.tsv", rows)
    first, second = read_dataset(folder).queries
    assert first.relevant == {"read": 2}
    assert len(first.steps) == 2, "steps are still those of the query"
    assert not second.answerable


def test_a_file_of_grades_needs_no_header(folder: Path) -> None:
    write(folder / "qrels.tsv", ["1\twrite\t3"])
    assert read_dataset(folder).queries[0].relevant == {"write": 3}


def test_documents_are_resources_of_no_server_under_their_titles(folder: Path) -> None:
    (folder / "tools.jsonl").unlink()
    long = "a title " * 100
    rows = [
        {"id": "read", "title": "Reading", "text": "How to read."},
        {"id": "write", "title": "", "text": "x"},
        {"id": "long", "title": long, "text": "y"},
    ]
    write(folder / "docs.jsonl", rows)
    judged = read_dataset(folder)
    first, second, third = judged.items
    assert judged.documents
    assert (first.kind, first.server, first.name, first.description) == (
        *(ItemKind.RESOURCE, ""),
        *("Reading", "How to read."),
    )
    assert all(item.is_document for item in judged.items)
    assert (second.key, second.name) == ("write", "write")
    assert long.startswith(third.name)
    assert len(third.name) > 500


def test_queries_of_other_splits_are_left_out(folder: Path) -> None:
    more = [{**QUERIES[0], "id": split, "split": split} for split in ("dev", "train_b", "test_in_domain")]
    write(folder / "queries.jsonl", [*QUERIES, *more])
    assert [query.id for query in read_dataset(folder).queries] == ["1", "2", "test_in_domain"]


def test_a_long_query_is_cut_to_what_a_search_takes(folder: Path) -> None:
    write(folder / "queries.jsonl", [{**QUERIES[0], "text": "x" * 5000}])
    assert len(read_dataset(folder).queries[0].text) == MAX_QUERY


def test_distractors_are_mixed_in_but_for_those_that_are_excluded_or_there_already(folder: Path) -> None:
    noise = folder.parent / "noise"
    rows = [{"id": key, "server": "s", "name": key} for key in ("m1", "m2", "read", "m3")]
    write(noise / "tools.jsonl", rows)
    judged = read_dataset(folder, distractors=noise)
    assert [item.key for item in judged.items] == ["read", "write", "m1", "m2", "m3"]
    assert judged.distractors == "noise"
    (noise / "exclude_mine.txt").write_text("m2\nm3\n", "utf-8")
    (noise / "exclude_others.txt").write_text("m1\n", "utf-8")
    assert [item.key for item in read_dataset(folder, distractors=noise).items] == ["read", "write", "m1"]


def test_apis_without_a_server_are_no_distractors(folder: Path) -> None:
    noise = folder.parent / "noise"
    kinds = {"m1": "api", "m2": "mcp"}
    rows = [{"id": key, "server": "s", "name": key, "kind": kind} for key, kind in kinds.items()]
    write(noise / "tools.jsonl", [*rows, {"id": "m3", "server": "s", "name": "m3"}])
    assert [item.key for item in read_dataset(folder, distractors=noise).items[2:]] == ["m2", "m3"]


def test_a_set_keeps_its_own_apis(folder: Path) -> None:
    write(folder / "tools.jsonl", [*TOOLS, {"id": "own", "server": "s", "name": "own", "kind": "api"}])
    assert [item.key for item in read_dataset(folder).items] == ["read", "write", "own"]


def test_a_document_without_an_id_is_named(folder: Path) -> None:
    (folder / "tools.jsonl").unlink()
    write(folder / "docs.jsonl", [{"id": "read", "text": "x"}, {"title": "No id", "text": "y"}])
    with pytest.raises(InvalidRequest, match="line 2: id is missing"):
        read_dataset(folder)


@pytest.mark.parametrize("missing", ["tools.jsonl", "queries.jsonl"])
def test_a_missing_file_is_reported_with_the_files_of_a_dataset(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(NotFound) as raised:
        read_dataset(folder)
    assert missing in raised.value.message
    assert "queries.jsonl" in raised.value.hint


@pytest.mark.parametrize(
    ("file", "line", "problem"),
    [
        ("tools.jsonl", "{", "not JSON"),
        ("tools.jsonl", "[1]", "not a JSON object"),
        ("tools.jsonl", '{"server": "files"}', "name is missing"),
        ("tools.jsonl", "{}", "is missing"),
        ("tools.jsonl", json.dumps(TOOLS[0]), "'read' is there already"),
        ("queries.jsonl", '{"id": "3"}', "text is missing"),
        ("queries.jsonl", '{"id": "3", "text": " "}', "text is missing"),
        ("queries.jsonl", '{"text": "x"}', "id is missing"),
        ("queries.jsonl", '{"id": "3", "text": "x", "gold_groups": "read"}', "list of lists"),
        ("queries.jsonl", '{"id": "3", "text": "x", "gold_groups": ["read"]}', "list of lists"),
        ("queries.jsonl", '{"id": "3", "text": "x", "gold_groups": [["raed"]]}', "'raed'"),
        ("qrels.tsv", "1\tread", "with tabs between"),
        ("qrels.tsv", "1\tread\tvery", "with tabs between"),
        ("qrels.tsv", "1\traed\t1", "'raed'"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(folder: Path, file: str, line: str, problem: str) -> None:
    if file == "qrels.tsv":
        write(folder / file, ["1\tread\t1", "1\tread\t1"])
    with (folder / file).open("a", encoding="utf-8") as opened:
        opened.write(line + "\n")
    with pytest.raises(InvalidRequest, match="line 3: ") as raised:
        read_dataset(folder)
    assert problem in raised.value.message
    assert file in raised.value.message
    assert raised.value.hint


def test_two_queries_of_one_id_are_refused(folder: Path) -> None:
    write(folder / "queries.jsonl", [QUERIES[0], {**QUERIES[1], "id": "1"}])
    with pytest.raises(InvalidRequest, match="same id"):
        read_dataset(folder)


def test_a_dataset_without_relevant_items_is_refused(folder: Path) -> None:
    write(folder / "queries.jsonl", [{"id": "1", "text": "read"}])
    with pytest.raises(InvalidRequest) as raised:
        read_dataset(folder)
    assert "gold_groups" in raised.value.hint


def test_an_empty_catalog_is_refused(folder: Path) -> None:
    write(folder / "tools.jsonl", [""])
    with pytest.raises(InvalidRequest, match="no items"):
        read_dataset(folder)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRequest, match="UTF-8"):
        read_dataset(folder)
