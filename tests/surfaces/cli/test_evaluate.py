"""`toolscript eval` on a small folder of one's own, with the real gateway behind it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.surfaces.cli.commands import CommandLine
from tests.whole.commands import run

TOOLS = {
    "read": "Read the contents of a file",
    "mail": "Send an electronic letter to somebody",
    "pods": "List what runs in a Kubernetes cluster",
    "rain": "Forecast the weather of a place",
}
QUERIES = {
    "look into a file": "read",
    "write to my aunt": "mail",
    "which containers are running": "pods",
    "will it rain tomorrow": "rain",
    "xqzv blorp": "",
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    tools = [{"id": key, "server": "s", "name": key, "description": text} for key, text in TOOLS.items()]
    queries = [
        {"id": str(at), "text": text, "gold_groups": [[key]] if key else []}
        for at, (text, key) in enumerate(QUERIES.items())
    ]
    for name, rows in (("tools", tools), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


def test_a_set_of_two_files_is_judged_and_compared(dataset: Path, model_folder: str) -> None:
    own = {"TOOLSCRIPT_DATA_DIR": str(dataset.parent / "data")}
    report = dataset.parent / "report.json"
    asked = ("eval", "--dataset", str(dataset), "--model", model_folder)
    shown = run(own, *asked, "--out", str(report)).stdout
    assert "mine: 4 items, 5 queries, 1 of them with no answer" in shown
    for row in ("gateway ", "BM25 ", "dense ", "RRF ", "z-score ", "false_answers", "embedding", "total"):
        assert any(line.startswith(row) for line in shown.splitlines()), row
    written = json.loads(report.read_text("utf-8"))
    assert written["systems"][0]["measures"]["hit@1"]["value"] == 1.0
    assert list((dataset.parent / "data" / "cache" / "eval").glob("*.vectors"))
    again = run(own, *asked, "--compare", str(report), "--json", "--no-without-gold", "--count", "4").stdout
    data = json.loads(again)
    assert (data["queries"], data["format"]) == (4, 1)
    changed = {one["measure"]: one["difference"] for one in data["compared"]}
    assert changed["ndcg@10"] == pytest.approx(0.0)
    assert "without_gold_auroc" not in changed


def test_a_recipe_is_fitted_and_judged_with(dataset: Path, model_folder: str) -> None:
    own = {"TOOLSCRIPT_DATA_DIR": str(dataset.parent / "data")}
    other = dataset.parent / "other"
    shutil.copytree(dataset, other)
    recipe, held_out = dataset.parent / "recipe.json", dataset.parent / "held_out"
    sets = (str(dataset), str(other))
    told = ("--out", str(recipe), "--held-out", str(held_out), "--model", model_folder)
    shown = run(own, "eval", "fit", *sets, *told).stdout
    assert "held out" in shown
    assert sorted(path.name for path in held_out.iterdir()) == ["mine.json", "other.json"]
    asked = ("eval", "--dataset", str(dataset), "--model", model_folder, "--no-without-gold", "--json")
    report = json.loads(run(own, *asked, "--recipe", str(held_out / "mine.json")).stdout)
    assert report["held_out"] == "weights fitted without it"
    assert json.loads(run(own, *asked, "--recipe", str(recipe)).stdout)["held_out"] == ""


def test_what_is_missing_is_named_with_the_command_that_helps(toolscript: CommandLine, tmp_path: Path) -> None:
    ended = toolscript("eval", "--seed", "1")
    assert ended.code != 0
    assert "--dataset" in ended.err
    ended = toolscript("eval", "--dataset", str(tmp_path), "--compare", str(tmp_path / "gone.json"))
    assert ended.code != 0
    assert "gone.json" in ended.err


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_file_that_is_no_report_is_refused_before_anything_is_asked(
    toolscript: CommandLine, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "other.json"
    file.write_text(content, "utf-8")
    ended = toolscript("eval", "--dataset", str(tmp_path), "--compare", str(file))
    assert ended.code != 0
    assert "--out" in ended.err


def test_help_is_shown_when_nothing_is_asked(toolscript: CommandLine) -> None:
    ended = toolscript("eval")
    assert "--dataset" in ended.out + ended.err
