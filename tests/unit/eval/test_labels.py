"""Labels of items: their file, the items they name, and how far two readings agree."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.tools.classify.builders import default_skills
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript_eval.labels import NONE, Label, agreement_of, labelled_items, read_labels

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "benchmarks" / "skill_labels.jsonl"
SKILLS = ("files", "mail")
ROW = {"dataset": "d", "id": "read", "best": "files", "acceptable": ["mail"], "split": "tune"}


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    return path


def test_a_label_has_a_best_skill_and_others_that_are_right_too(tmp_path: Path) -> None:
    (label,) = read_labels(write(tmp_path / "l.jsonl", {**ROW, "readings": ["files", "mail"]}), SKILLS)
    assert label == Label("d", "read", "files", frozenset({"mail"}), "tune", ("files", "mail"))
    assert [label.accepts(skill) for skill in ("files", "mail", "other", None)] == [True, True, False, False]
    assert [label.is_best(skill) for skill in ("files", "mail", None)] == [True, False, False]


def test_no_skill_may_be_the_right_answer() -> None:
    assert Label("d", "i", NONE).accepts(None)
    assert Label("d", "i", NONE).is_best(None)
    assert Label("d", "i", "files", frozenset({NONE})).accepts(None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"best": "no_such"}, "no skill 'no_such'"),
        ({"acceptable": ["no_such"]}, "no skill 'no_such'"),
        ({"readings": ["no_such"]}, "no skill 'no_such'"),
        ({"best": ""}, "best is missing"),
        ({"id": 7}, "id is missing"),
        ({"dataset": None}, "dataset is missing"),
        ({"acceptable": "mail"}, "acceptable must be a list"),
        ({"description": "Reads a file"}, "unknown field 'description'"),
    ],
)
def test_a_wrong_line_is_named_with_its_problem(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    path = write(tmp_path / "l.jsonl", {**ROW, "id": "first"}, {**ROW, **change})
    with pytest.raises(InvalidRequest, match=rf"l\.jsonl, line 2: .*{problem}"):
        read_labels(path, SKILLS)


def test_an_item_is_labelled_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="line 2: 'read' of d is labelled already"):
        read_labels(write(tmp_path / "l.jsonl", ROW, ROW), SKILLS)
    assert len(read_labels(write(tmp_path / "l.jsonl", ROW, {**ROW, "dataset": "e"}), SKILLS)) == 2


def test_a_file_without_labels_is_refused(tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text("\n", "utf-8")
    with pytest.raises(InvalidRequest, match="has no labels"):
        read_labels(tmp_path / "l.jsonl", SKILLS)


def test_labels_find_their_items_in_the_folders_of_their_datasets(tmp_path: Path) -> None:
    for name, key in (("d", "read"), ("e", "send")):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "tools.jsonl", {"id": key, "server": "s", "name": key, "description": name})
    labels = [Label("e", "send", "mail"), Label("d", "read", "files")]
    assert [item.description for item in labelled_items(labels, tmp_path)] == ["e", "d"]
    with pytest.raises(InvalidRequest, match="1 labelled items are not in the datasets, such as 'gone' of d"):
        labelled_items([Label("d", "gone", "mail")], tmp_path)
    with pytest.raises(NotFound):
        labelled_items([Label("no_dataset", "gone", "mail")], tmp_path)


def test_agreement_is_corrected_for_chance() -> None:
    def read(*pairs: tuple[str, str]) -> list[Label]:
        return [Label("d", str(number), pair[0], readings=pair) for number, pair in enumerate(pairs)]

    same = agreement_of(read(("a", "a"), ("b", "b")))
    assert same is not None
    assert (same.items, same.share, same.kappa) == (2, 1.0, 1.0)
    # By hand: both agree on 3 of 4; by chance on 1/2 * 3/4 + 1/2 * 1/4 = 1/2; (3/4 - 1/2) / (1 - 1/2) = 1/2.
    half = agreement_of(read(("a", "a"), ("a", "a"), ("b", "a"), ("b", "b")))
    assert half is not None
    assert [half.share, half.kappa] == pytest.approx([0.75, 0.5])
    always = agreement_of(read(("a", "a"), ("a", "a")))
    assert always is not None
    assert always.kappa == 1.0
    assert agreement_of([Label("d", "i", "a"), Label("d", "j", "a", readings=("a",))]) is None


def test_the_labels_of_the_benchmarks_are_two_equal_halves_and_a_later_sample() -> None:
    labels = read_labels(SHIPPED, [skill.id for skill in default_skills()])
    assert Counter(label.split for label in labels) == {"tune": 150, "test": 150, "fresh": 100}
    by_dataset = Counter((label.dataset, label.split) for label in labels)
    datasets = {label.dataset for label in labels}
    assert len(datasets) == 9
    assert [name for name in datasets if by_dataset[name, "tune"] != by_dataset[name, "test"]] == []
    assert [name for name in datasets if not by_dataset[name, "fresh"]] == []
    assert [label.item_id for label in labels if label.best in label.acceptable] == []


def test_the_two_halves_were_read_twice_and_the_best_skill_is_that_of_a_reading() -> None:
    labels = read_labels(SHIPPED, [skill.id for skill in default_skills()])
    halves = [label for label in labels if label.split in ("tune", "test")]
    assert [label.item_id for label in halves if len(label.readings) != 2] == []
    assert [label.item_id for label in halves if label.best not in label.readings] == []
