"""The first search on a machine without a model: downloaded, resumed, refused, damaged, from a real server."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Machine, mcp_server, new_machine
from tests.unit.core.embedding.local_hub import LARGE, Hub, open_hub

pytestmark = pytest.mark.requirement("TS-006")

MODEL = "Xenova/all-MiniLM-L6-v2"
REPOSITORY = "Qdrant/all-MiniLM-L6-v2-onnx"
ASKED = ("search", "add two numbers", "--json")


@pytest.fixture
def hub(weights: Path) -> Iterator[Hub]:
    with open_hub(weights, REPOSITORY) as hub:
        yield hub


@pytest.fixture
def fresh(tmp_path: Path, weights: Path, hub: Hub) -> Machine:
    """A machine that knows a model by its name alone, with one server whose tools are known already."""
    machine = new_machine(tmp_path / "machine", weights)
    machine.configure({"plain": mcp_server("plain")})
    machine.run("list-tools")
    return machine.without("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY").also(
        TOOLSCRIPT_SEARCH_MODEL=MODEL, HF_ENDPOINT=hub.url, HF_HOME=str(machine.home / "hf"), NO_PROXY="127.0.0.1"
    )


@pytest.mark.states("S1-018", "S1-020")
def test_a_model_is_downloaded_once_with_its_progress_shown(fresh: Machine, hub: Hub) -> None:
    first = fresh.run(*ASKED)
    assert json.loads(first.stdout)["semantic"] is True
    assert "downloading model.onnx" in first.stderr
    asked = len(hub.asked)
    second = fresh.run(*ASKED)
    assert json.loads(second.stdout)["semantic"] is True
    assert len(hub.asked) == asked
    assert "model.onnx" not in second.stderr


def test_a_download_that_breaks_goes_on_where_it_was(fresh: Machine, hub: Hub) -> None:
    # It is written down in pieces of ten million bytes.
    hub.breaks_after = 12 * LARGE
    done = fresh.run(*ASKED)
    assert json.loads(done.stdout)["semantic"] is True
    ranges = [wanted for method, name, wanted in hub.asked if method == "GET" and name == "model.onnx"]
    assert ranges[0] == ""
    assert int(ranges[1].removeprefix("bytes=").partition("-")[0]) >= 10 * LARGE
    assert len(ranges) == 2


def test_what_is_not_as_the_hub_names_it_is_not_used_and_not_kept(fresh: Machine, hub: Hub) -> None:
    hub.damaged = "model.onnx"
    done = fresh.run(*ASKED)
    answer = json.loads(done.stdout)
    assert answer["semantic"] is False
    assert "arrived damaged" in answer["hint"]
    sizes = [path.stat().st_size for path in (fresh.data / "models").rglob("*") if path.is_file()]
    assert max(sizes) < LARGE
    hub.damaged, asked = "", len(hub.asked)
    assert "arrived damaged" in json.loads(fresh.run(*ASKED).stdout)["hint"]
    assert len(hub.asked) == asked
    fresh.run("doctor")
    assert json.loads(fresh.run(*ASKED).stdout)["semantic"] is True


@pytest.mark.parametrize("status", [403, 401, 404, 500])
def test_a_refusal_is_said_at_once_and_costs_nothing_the_second_time(
    fresh: Machine, hub: Hub, status: int
) -> None:
    hub.refuses = status
    began = time.monotonic()
    first = fresh.run("search", "add two numbers")
    assert time.monotonic() - began < 30
    assert "refused" in first.stderr
    assert f"HTTP {status}" in first.stderr
    asked = len(hub.asked)
    second = fresh.run("search", "add two numbers")
    assert len(hub.asked) == asked
    assert second.stderr.count("refused") == 1
    assert "toolscript doctor" in second.stderr


def test_whoever_has_been_refused_loads_nothing_that_runs_models(fresh: Machine, hub: Hub) -> None:
    hub.refuses = 403
    fresh.run(*ASKED)
    refused = fresh.also(PYTHONPROFILEIMPORTTIME="1").run(*ASKED)
    for heavy in ("fastembed", "onnxruntime", "tokenizers", "huggingface_hub"):
        assert f" {heavy}\n" not in refused.stderr


def test_doctor_tries_again_and_then_all_is_well(fresh: Machine, hub: Hub) -> None:
    hub.refuses = 403
    fresh.run(*ASKED)
    hub.refuses = 0
    assert json.loads(fresh.run(*ASKED).stdout)["semantic"] is False
    findings = {one["code"]: one["ok"] for one in fresh.json("doctor")["findings"]}
    assert findings["MODEL"] is True
    assert json.loads(fresh.run(*ASKED).stdout)["semantic"] is True


def test_a_hub_that_cannot_be_reached_is_remembered_for_a_shorter_while(fresh: Machine) -> None:
    away = fresh.also(HF_ENDPOINT="http://127.0.0.1:9")
    assert "cannot be reached" in json.loads(away.run(*ASKED).stdout)["hint"]
    told = json.loads((fresh.data / "models" / "refused.json").read_text("utf-8"))
    [one] = told.values()
    assert one["seconds"] < 3600
