"""The first search on a machine without a model: downloaded, resumed, refused, damaged, from a real server."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Machine, mcp_server, new_machine, until
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
    """Return a machine with the name of a model, and one server with cached tools."""
    machine = new_machine(tmp_path / "machine", weights)
    machine.configure({"plain": mcp_server("plain")})
    machine.run("list-tools")
    return machine.without("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY").also(
        TOOLSCRIPT_SEARCH_MODEL=MODEL, HF_ENDPOINT=hub.url, HF_HOME=str(machine.home / "hf"), NO_PROXY="127.0.0.1"
    )


@pytest.mark.states("S1-018", "S1-020")
def test_a_model_is_downloaded_once_with_its_progress_shown(fresh: Machine, hub: Hub) -> None:
    # What takes less than a second is not worth a line.
    hub.may_send.clear()
    threading.Timer(4, hub.may_send.set).start()
    first = fresh.run(*ASKED)
    assert json.loads(first.stdout)["semantic"] is True
    assert "downloading model.onnx" in first.stderr
    requests = len(hub.asked)
    second = fresh.run(*ASKED)
    assert json.loads(second.stdout)["semantic"] is True
    assert len(hub.asked) == requests
    assert "model.onnx" not in second.stderr


def test_an_interrupted_download_resumes(fresh: Machine, hub: Hub) -> None:
    # It is written in blocks of ten million bytes.
    hub.breaks_after = 12 * LARGE
    done = fresh.run(*ASKED)
    assert json.loads(done.stdout)["semantic"] is True
    ranges = [expected for method, name, expected in hub.asked if method == "GET" and name == "model.onnx"]
    assert ranges[0] == ""
    assert int(ranges[1].removeprefix("bytes=").partition("-")[0]) >= 10 * LARGE
    assert len(ranges) == 2


@pytest.mark.nightly
def test_a_file_with_a_wrong_hash_is_neither_used_nor_kept(fresh: Machine, hub: Hub) -> None:
    hub.damaged = "model.onnx"
    done = fresh.run(*ASKED)
    answer = json.loads(done.stdout)
    assert answer["model"] == "builtin"
    assert "arrived damaged" in answer["hint"]
    sizes = [path.stat().st_size for path in (fresh.data / "models").rglob("*") if path.is_file()]
    assert max(sizes) < LARGE
    hub.damaged, requests = "", len(hub.asked)
    assert "arrived damaged" in json.loads(fresh.run(*ASKED).stdout)["hint"]
    assert len(hub.asked) == requests
    fresh.run("doctor")
    assert json.loads(fresh.run(*ASKED).stdout)["model"] not in (None, "builtin")


@pytest.mark.nightly
@pytest.mark.parametrize("status", [403, 401, 404, 500])
def test_a_refusal_is_reported_at_once_and_costs_nothing_the_second_time(
    fresh: Machine, hub: Hub, status: int
) -> None:
    hub.refuses = status
    began = time.monotonic()
    first = fresh.run("search", "add two numbers")
    assert time.monotonic() - began < 30
    assert "refused" in first.stderr
    assert f"HTTP {status}" in first.stderr
    requests = len(hub.asked)
    second = fresh.run("search", "add two numbers")
    assert len(hub.asked) == requests
    assert second.stderr.count("refused") == 1
    assert "toolscript doctor" in second.stderr


def test_a_gateway_answers_at_once_while_the_model_is_downloaded_and_says_what_it_adds(
    fresh: Machine, hub: Hub
) -> None:
    hub.may_send.clear()
    with fresh.gateway() as gateway:
        answer = gateway.search("add two numbers")
        assert (answer["model"], answer["results"][0]["toolId"]) == ("builtin", "plain__add")
        assert f"{MODEL} is still loading, or being downloaded once; it ranks a little better" in answer["hint"]
        hub.may_send.set()
        until(lambda: not gateway.health()["is_fallback"], "the model that was downloaded meanwhile")
        answer = gateway.search("add two numbers")
        assert answer["model"] != "builtin"
        assert "hint" not in answer


def test_after_a_refusal_no_model_runtime_is_loaded(fresh: Machine, hub: Hub) -> None:
    hub.refuses = 403
    fresh.run(*ASKED)
    refused = fresh.also(PYTHONPROFILEIMPORTTIME="1").run(*ASKED)
    assert json.loads(refused.stdout)["model"] == "builtin"
    for heavy in ("fastembed", "onnxruntime", "huggingface_hub"):
        assert f" {heavy}\n" not in refused.stderr


@pytest.mark.nightly
def test_doctor_tries_again_and_then_all_is_well(fresh: Machine, hub: Hub) -> None:
    hub.refuses = 403
    fresh.run(*ASKED)
    hub.refuses = 0
    assert json.loads(fresh.run(*ASKED).stdout)["model"] == "builtin"
    findings = {finding["code"]: finding["ok"] for finding in fresh.json("doctor")["findings"]}
    assert findings["MODEL"] is True
    assert json.loads(fresh.run(*ASKED).stdout)["model"] not in (None, "builtin")


@pytest.mark.nightly
def test_an_unreachable_hub_is_cached_for_a_shorter_time(fresh: Machine) -> None:
    away = fresh.also(HF_ENDPOINT="http://127.0.0.1:9")
    assert "cannot be reached" in json.loads(away.run(*ASKED).stdout)["hint"]
    output = json.loads((fresh.data / "models" / "refused.json").read_text("utf-8"))
    [item] = output.values()
    assert item["seconds"] < 3600
