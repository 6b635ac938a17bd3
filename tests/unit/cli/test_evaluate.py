"""`toolscript-eval` on a small dataset, with the real gateway."""

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run, run_here
from tests.unit.cli.commands import CommandLine
from toolscript.cli.app import run as run_app
from toolscript.core.values import OnProgress
from toolscript.tools.model.query import Strategy
from toolscript_eval.cli import evaluate_commands
from toolscript_eval.dataset import EvalRequest, EvalResult

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
        {"id": str(number), "text": text, "gold_groups": [[key]] if key else []}
        for number, (text, key) in enumerate(QUERIES.items())
    ]
    for name, rows in (("tools", tools), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


def test_a_dataset_of_two_files_is_evaluated_and_compared(dataset: Path, model_folder: str) -> None:
    own = {"TOOLSCRIPT_DATA_DIR": str(dataset.parent / "data")}
    report = dataset.parent / "report.json"
    arguments = ("eval", "--dataset", str(dataset), "--model", model_folder)
    plot = dataset.parent / "verdict.svg"
    output = run(own, *arguments, "--out", str(report), "--plot", str(plot)).stdout
    assert "mine: 4 items, 5 queries, 1 of them with no answer" in output
    for row in ("gateway ", "BM25 ", "dense ", "RRF ", "z-score ", "false_answers", "embedding", "total"):
        assert any(line.startswith(row) for line in output.splitlines()), row
    written = json.loads(report.read_text("utf-8"))
    assert written["systems"][0]["measures"]["hit@1"]["value"] == 1.0
    assert "mine, unanswerable (1), in use" in plot.read_text("utf-8")
    assert list((dataset.parent / "data" / "cache" / "eval").glob("*.vectors"))
    again = run_here(
        own, *arguments, "--compare", str(report), "--json", "--no-without-gold", "--count", "4"
    ).stdout
    data = json.loads(again)
    assert (data["queries"], data["format"]) == (4, 1)
    changed = {row["measure"]: row["difference"] for row in data["compared"]}
    assert changed["ndcg@10"] == pytest.approx(0.0)
    assert "without_gold_auroc" not in changed


def test_weights_are_fitted_and_used_in_an_evaluation(dataset: Path, model_folder: str) -> None:
    own = {"TOOLSCRIPT_DATA_DIR": str(dataset.parent / "data")}
    other = dataset.parent / "other"
    shutil.copytree(dataset, other)
    weights, held_out = dataset.parent / "recipe.json", dataset.parent / "held_out"
    sets = (str(dataset), str(other))
    options = ("--out", str(weights), "--held-out", str(held_out), "--model", model_folder)
    output = run_here(own, "eval", "fit", *sets, *options).stdout
    assert "held out" in output
    assert sorted(path.name for path in held_out.iterdir()) == ["mine.json", "other.json"]
    arguments = ("eval", "--dataset", str(dataset), "--model", model_folder, "--no-without-gold", "--json")
    report = json.loads(run_here(own, *arguments, "--weights", str(held_out / "mine.json")).stdout)
    assert report["held_out"] == "weights fitted without it"
    assert json.loads(run_here(own, *arguments, "--weights", str(weights)).stdout)["held_out"] == ""


@dataclass
class Wiring:
    """Double of the evaluation of an engine; records its requests."""

    asked: list[EvalRequest] = field(default_factory=list)

    def evaluate(self, request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
        self.asked.append(request)
        return EvalResult({"format": 1}, "judged")


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ((), Strategy.DIRECT),
        (("--strategy", "direct"), Strategy.DIRECT),
        (("--strategy", "hierarchical"), Strategy.HIERARCHICAL),
        (("--strategy", "hybrid"), Strategy.HYBRID),
    ],
)
def test_the_service_is_evaluated_with_direct_search_by_default(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], strategy: Strategy
) -> None:
    service, gateway = Wiring(), Wiring()
    monkeypatch.setattr("toolscript_eval.service.evaluate", service.evaluate)
    monkeypatch.setattr("toolscript_eval.gateway.evaluate", gateway.evaluate)
    monkeypatch.setattr(sys, "argv", ["eval", "--dataset", "mine", "--engine", "service", *options])
    with pytest.raises(SystemExit) as ended:
        run_app(evaluate_commands())
    assert not ended.value.code
    assert [request.strategy for request in service.asked] == [strategy]
    assert gateway.asked == []


def test_a_gateway_cannot_be_evaluated_with_skill_routing(toolscript: CommandLine, dataset: Path) -> None:
    ended = toolscript("eval", "--dataset", str(dataset), "--strategy", "hybrid")
    assert ended.code == 2
    assert "--engine service" in ended.err


@pytest.mark.nightly
def test_skill_routing_is_evaluated_on_the_real_engines(installation: Installation, dataset: Path) -> None:
    own = {**installation.environment, "TOOLSCRIPT_DATA_DIR": str(dataset.parent / "data")}
    report = dataset.parent / "report.json"
    arguments = ("eval", "--dataset", str(dataset), "--engine", "service", "--strategy", "hierarchical")
    output = run_here(own, *arguments, "--out", str(report)).stdout
    assert "service, hierarchical search, model" in output
    for row in ("routed ", "skills_used ", "catalog_searched ", "gold_lost ", "skills "):
        assert any(line.startswith(row) for line in output.splitlines()), row
    assert "without skills" in output, "the same points are searched without them"
    written = json.loads(report.read_text("utf-8"))
    assert written["strategy"] == "hierarchical"
    assert 0 < written["systems"][0]["measures"]["catalog_searched"]["value"] <= 1


def test_a_missing_file_is_named_with_the_command_that_helps(toolscript: CommandLine, tmp_path: Path) -> None:
    ended = toolscript("eval", "--seed", "1")
    assert ended.code != 0
    assert "--dataset" in ended.err
    ended = toolscript("eval", "--dataset", str(tmp_path), "--compare", str(tmp_path / "gone.json"))
    assert ended.code != 0
    assert "gone.json" in ended.err


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_file_that_is_not_a_report_is_refused_before_the_evaluation(
    toolscript: CommandLine, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "other.json"
    file.write_text(content, "utf-8")
    ended = toolscript("eval", "--dataset", str(tmp_path), "--compare", str(file))
    assert ended.code != 0
    assert "--out" in ended.err


def test_the_command_without_arguments_shows_help(toolscript: CommandLine) -> None:
    ended = toolscript("eval")
    assert "--dataset" in ended.out + ended.err
