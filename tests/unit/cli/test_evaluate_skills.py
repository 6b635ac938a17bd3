"""`toolscript-eval skills`: both classifiers over a small labelled set, the model's answers recorded and replayed.

The recorded answers come from a scripted endpoint on loopback, not from a language model: they show that the path
works, and nothing about how well a model classifies.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import run_here
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify.models import answer, assignment, items_in

TOOLS = {
    "read_file": ("Read the contents of a file in a folder.", "file_operations"),
    "send_email": ("Send an email message to someone's inbox.", "communication"),
    "get_forecast": ("Weather forecast with temperature and rainfall.", "weather_environment"),
    "xyzzy": ("plugh", "none"),
}


@pytest.fixture
def arguments(tmp_path: Path, model_folder: str) -> list[str]:
    (tmp_path / "mine").mkdir()
    tools = [{"id": key, "server": "s", "name": key, "description": text} for key, (text, _) in TOOLS.items()]
    labels = [
        {"dataset": "mine", "id": key, "best": best, "split": "test" if best == "none" else "tune"}
        for key, (_, best) in TOOLS.items()
    ]
    for path, rows in ((tmp_path / "mine" / "tools.jsonl", tools), (tmp_path / "labels.jsonl", labels)):
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    where = ["--labels", str(tmp_path / "labels.jsonl"), "--data", str(tmp_path)]
    return ["eval", "skills", *where, "--model", model_folder]


def environment(tmp_path: Path, url: str = "") -> dict[str, str]:
    text = {"TOOLSCRIPT_TEXT_URL": url, "TOOLSCRIPT_TEXT_MODEL": "scripted"} if url else {}
    return {"TOOLSCRIPT_DATA_DIR": str(tmp_path / "data"), **text}


def scripted(request: dict[str, Any]) -> dict[str, object]:
    """Answer as the labels say, but call mail a calendar, and leave the last item without an answer."""
    skills = {"read_file": "file_operations", "send_email": "calendar_management", "get_forecast": "maps_travel"}
    known = [item for item in items_in(request) if item["name"] in skills]
    return {"items": [answer(item["item"], assignment(skills[item["name"]], 0.9)) for item in known]}


def by_split(output: str, classifier: str) -> Mapping[str, Mapping[str, Any]]:
    reports = json.loads(output)["classifiers"]
    return {report["split"]: report for report in reports if report["classifier"] == classifier}


def test_the_rules_are_measured_on_every_split(arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    text = run_here(environment(tmp_path), *arguments, "--out", str(out)).stdout
    assert "4 labelled items, 1 of them in no skill" in text
    reports = by_split(out.read_text("utf-8"), "rules")
    assert {split: report["items"] for split, report in reports.items()} == {"test": 1, "tune": 3, "all": 4}
    assert reports["tune"]["acceptable"]["value"] == 1.0
    assert reports["tune"]["mistakes"] == []
    only = run_here(environment(tmp_path), *arguments, "--split", "tune", "--json").stdout
    assert list(by_split(only, "rules")) == ["tune"]


def test_a_model_is_recorded_once_and_replayed_without_its_endpoint(arguments: list[str], tmp_path: Path) -> None:
    cassette = tmp_path / "answers.json"
    llm = [*arguments, "--classifier", "rules", "--classifier", "llm", "--cassette", str(cassette), "--json"]
    with TextEndpoint(model=scripted) as endpoint:
        first = run_here(environment(tmp_path, endpoint.url), *llm, "--record").stdout
        assert len(endpoint.asked) == 1
    again = run_here(environment(tmp_path), *llm).stdout
    assert json.loads(again) == json.loads(first)
    report = by_split(again, "llm")["all"]
    assert report["acceptable"]["value"] == 0.5
    assert [mistake["skill"] for mistake in report["mistakes"]] == ["calendar_management", "maps_travel"]
    assert report["coverage"]["value"] == 0.75


def test_a_changed_item_has_no_recorded_answer_and_the_error_says_what_to_do(
    arguments: list[str], tmp_path: Path
) -> None:
    cassette = tmp_path / "answers.json"
    llm = [*arguments, "--classifier", "llm", "--cassette", str(cassette)]
    with TextEndpoint(model=scripted) as endpoint:
        run_here(environment(tmp_path, endpoint.url), *llm, "--record")
    tools = tmp_path / "mine" / "tools.jsonl"
    tools.write_text(tools.read_text("utf-8").replace("a folder", "an archive"), "utf-8")
    failed = run_here(environment(tmp_path), *llm, code=2)
    assert "has no answer to 1 requests" in failed.stderr
    assert "add --record" in failed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--classifier", "llm"], "no language model is configured"),
        (["--record"], "there is no file to record to"),
        (["--classifier", "llm", "--cassette", "gone.json"], "cannot read gone.json"),
        (["--classifier", "llm", "--cassette", "new.json", "--record"], "no language model is configured"),
        (["--split", "dev"], "no label has the split 'dev'"),
        (["--taxonomy", "gone.json"], "cannot read gone.json"),
    ],
)
def test_what_is_missing_is_named(arguments: list[str], tmp_path: Path, options: list[str], message: str) -> None:
    assert message in run_here(environment(tmp_path), *arguments, *options, code=2).stderr


def test_rules_that_answer_in_place_of_a_dead_endpoint_are_no_measurement(
    arguments: list[str], tmp_path: Path
) -> None:
    dead = environment(tmp_path, "http://127.0.0.1:9/v1")
    failed = run_here(dead, *arguments, "--classifier", "llm", code=2)
    assert "the language model classified no item" in failed.stderr
