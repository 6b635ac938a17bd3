"""The model and device of a search, and the fallback without a model."""

import json
import logging
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.e2e.commands import command
from tests.e2e.gateway.caches import card_of, embeddings_of, meaning, vector_of
from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Machine, until
from tests.e2e.gateway.scenarios import scenario
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.embedding.engine import GPU_PROVIDERS, Device, providers_for
from toolscript.core.item_json import item_from_json
from toolscript.core.item_text import embedded_text

pytestmark = pytest.mark.requirement("TS-005")

READ = tool("files", "read_file", "Read the contents of a file from disk", path="where the file is")
MOVE = tool("files", "move_file", "Move or rename a file", source="from", destination="to")
BGE_PREFIX = "Represent this sentence for searching relevant passages: "
MINILM, BGE = "Xenova/all-MiniLM-L6-v2", "Xenova/bge-small-en-v1.5"
# Download folder of the library, and its name for the weights.
KEPT_AS = {
    BGE: ("models--Qdrant--bge-small-en-v1.5-onnx-Q", "model_optimized.onnx"),
    MINILM: ("models--Qdrant--all-MiniLM-L6-v2-onnx", "model.onnx"),
}
has_a_gpu = any(one in GPU_PROVIDERS for one in onnxruntime.get_available_providers())


@pytest.fixture
def files(machine: Machine) -> Machine:
    """Return a machine with one server of two tools."""
    catalog = write_catalog(machine.folder / "files.jsonl", [READ, MOVE])
    machine.configure(catalog_servers(catalog, ["files"]))
    return machine


def download(machine: Machine, weights: Path, name: str) -> None:
    """Simulate an earlier download of the model, with the weights of the test model."""
    folder, file = KEPT_AS[name]
    kept = machine.data / "models" / folder
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("0" * 40, "utf-8")
    linked(weights, kept / "snapshots" / ("0" * 40), {"model.onnx": file})


def linked(weights: Path, folder: Path, names: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True)
    for file in weights.iterdir():
        (folder / (names or {}).get(file.name, file.name)).symlink_to(file)
    return folder


@scenario("Default model initialization")
@pytest.mark.states("S1-016", "S1-017", "S1-021")
def test_the_default_model_is_bge_small_and_is_ready_soon(files: Machine, weights: Path) -> None:
    download(files, weights, BGE)
    assert files.here().without("TOOLSCRIPT_SEARCH_MODEL").json("search", "read a file")["semantic"] is True
    assert card_of(embeddings_of(files))["name"] == "BAAI/bge-small-en-v1.5"
    # CPU time, not wall time: the machine may be busy.
    began = time.process_time()
    assert LocalEmbedder(BGE, downloads=files.data / "models").model.name == "BAAI/bge-small-en-v1.5"
    assert time.process_time() - began < 5


@scenario("Model selection via CLI")
@scenario("Model selection via environment variable")
@pytest.mark.states("S1-016", "S1-025", "S1-028")
def test_a_flag_chooses_the_model_before_the_environment_does(files: Machine, weights: Path) -> None:
    download(files, weights, MINILM)
    output = files.here().also(TOOLSCRIPT_SEARCH_MODEL=MINILM)
    assert output.json("search", "read a file")["semantic"] is True
    assert card_of(embeddings_of(files))["name"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert output.json("search", "read a file", "--model", str(weights))["semantic"] is True
    assert card_of(embeddings_of(files))["name"] == weights.name


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.states("S1-026", "S1-029")
def test_an_unknown_model_is_refused_with_a_list_of_known_ones(files: Machine, flag: bool) -> None:
    if flag:
        done = files.here().run("search", "read a file", "--model", "Xenova/nonsense", code=2)
    else:
        done = files.here().also(TOOLSCRIPT_SEARCH_MODEL="Xenova/nonsense").run("search", "read a file", code=2)
    assert "error: the embedding model Xenova/nonsense cannot be loaded" in done.stderr
    assert all(existing in done.stderr for existing in (BGE, MINILM, "intfloat/multilingual-e5-large"))
    assert done.stdout == ""


@scenario("Query prefix for retrieval optimization")
@pytest.mark.states("S1-030", "S1-031")
async def test_bge_has_its_prefix_before_the_query_and_not_before_the_tool(files: Machine, weights: Path) -> None:
    folder = linked(weights, files.folder / "bge-mini-en")
    query = "look into a document"
    answer = files.json("search", query, "--model", str(folder), "--explain", "--threshold", "0")
    kept = vector_of(embeddings_of(files), "files__read_file")
    bge = LocalEmbedder(str(folder))
    prefixed, bare = [await bge.embed_texts([text]) for text in (BGE_PREFIX + query, query)]
    message = meaning(answer, "files__read_file")
    assert message == pytest.approx(float(prefixed[0] @ kept), abs=2e-3)
    assert abs(message - float(bare[0] @ kept)) > 2e-2
    text = embedded_text(item_from_json(READ))
    alone, behind_a_prefix = [await bge.embed_texts([one]) for one in (text, BGE_PREFIX + text)]
    # Not equal to the last digit: both tools were embedded at once, and these weights are quantised.
    assert float(alone[0] @ kept) > 0.97 > float(behind_a_prefix[0] @ kept)


@pytest.mark.requirement("TS-006")
@scenario("Graceful fallback on model failure")
@pytest.mark.states("S1-033", "S1-034")
def test_without_a_model_and_a_network_the_built_in_one_answers_and_warns_once(files: Machine) -> None:
    offline = files.without("TOOLSCRIPT_SEARCH_MODEL")
    done = offline.run("search", "--json", standard_input="read the contents\nread_fil\ncontents of a file\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["results"][0]["toolId"] for one in answers] == ["files__read_file"] * 3
    assert [(one["semantic"], one["model"]) for one in answers] == [(True, "builtin")] * 3
    assert all("ranked by the built-in model" in one["hint"] for one in answers)
    assert done.stderr.count("warning: search with the built-in model") == 1
    assert (
        "BAAI/bge-small-en-v1.5 is not on this machine, and https://huggingface.co cannot be reached"
        in done.stderr
    )
    assert not embeddings_of(files).exists()


@pytest.mark.requirement("TS-006")
@scenario("Graceful fallback on model failure")
@pytest.mark.states("S1-033", "S1-034", "S1-142")
def test_a_gateway_with_a_broken_model_uses_the_built_in_one_and_reports_it(files: Machine, weights: Path) -> None:
    broken = linked(weights, files.folder / "broken")
    (broken / "model.onnx").unlink()
    (broken / "model.onnx").write_text("no weights", "utf-8")
    with files.also(TOOLSCRIPT_SEARCH_MODEL=str(broken)).gateway() as gateway:
        until(lambda: gateway.health()["items"] and "cannot be loaded" in gateway.health()["note"], "a verdict")
        health, answer = gateway.health(), gateway.search("read a file")
        assert (health["status"], health["ready"], health["semantic"]) == ("degraded", True, True)
        assert (health["model"], health["is_fallback"]) == ("builtin", True)
        assert (answer["model"], answer["results"][0]["toolId"]) == ("builtin", "files__read_file")
        assert gateway.log.read_text("utf-8").count("search with the built-in model") == 1


@pytest.mark.requirement("TS-006")
@pytest.mark.parametrize("model", ["builtin", "none"])
def test_the_built_in_model_or_none_can_be_chosen_and_neither_is_degraded(files: Machine, model: str) -> None:
    expected = (True, "builtin") if model == "builtin" else (False, None)
    chosen = files.also(TOOLSCRIPT_SEARCH_MODEL=model)
    done = chosen.run("search", "--json", "read the contents of a file")
    answer = json.loads(done.stdout)
    assert (answer["semantic"], answer.get("model")) == expected
    assert answer["results"][0]["toolId"] == "files__read_file"
    assert "hint" not in answer
    assert "model" not in done.stderr
    assert not (files.data / "models").exists()


@pytest.mark.requirement("TS-006")
def test_a_chosen_built_in_model_gives_the_semantic_score_of_literal_mode(files: Machine) -> None:
    query = "look into a document"
    options = ("--search-type", "semantic", "--explain", "--threshold", "0")
    answer = files.also(TOOLSCRIPT_SEARCH_MODEL="builtin").json("search", query, *options)
    assert answer["model"] == "builtin"
    assert 0 < meaning(answer, "files__read_file") < 1


@scenario("Force GPU acceleration via environment")
@pytest.mark.skipif(has_a_gpu, reason="there is a GPU here")
@pytest.mark.parametrize("command", [("search", "read a file"), ("gateway", "start", "--port", "0")])
@pytest.mark.states("S1-135")
def test_a_requested_gpu_that_is_missing_is_an_error(files: Machine, command: tuple[str, ...]) -> None:
    done = files.here().also(TOOLSCRIPT_SEARCH_DEVICE="gpu").run(*command, code=2)
    assert "error: a GPU is required" in done.stderr
    assert "TOOLSCRIPT_SEARCH_DEVICE=auto" in done.stderr


@pytest.mark.skipif(has_a_gpu, reason="there is a GPU here")
@pytest.mark.states("S1-135")
def test_an_mcp_client_is_told_that_nothing_runs_and_the_person_that_a_gpu_is_missing(files: Machine) -> None:
    machine = files.also(TOOLSCRIPT_SEARCH_DEVICE="gpu")
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_tools"}}
    with subprocess.Popen(
        command("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.whole_environment(),
        cwd=machine.project,
        text=True,
    ) as pipe:
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        pipe.stdin.write(json.dumps(asked) + "\n")
        pipe.stdin.flush()
        assert "no gateway could be started" in pipe.stdout.readline()
        _, errors = pipe.communicate()
    assert "a GPU is required" in errors
    assert "TOOLSCRIPT_SEARCH_DEVICE=auto" in errors


@scenario("Disable GPU acceleration via environment")
@pytest.mark.states("S1-024", "S1-132", "S1-133")
def test_on_the_cpu_alone_no_gpu_is_tried(files: Machine) -> None:
    output = files.also(TOOLSCRIPT_SEARCH_DEVICE="cpu", TOOLSCRIPT_GATEWAY_LOG_LEVEL="debug")
    with output.gateway() as gateway:
        assert gateway.until_embedded(2).search("read a file")["semantic"] is True
        log = gateway.log.read_text("utf-8")
    assert "GPU is disabled" in log
    assert "GPU is enabled" not in log


@scenario("GPU acceleration")
@pytest.mark.states("S1-022", "S1-023", "S1-024")
async def test_an_available_gpu_is_tried_and_the_cpu_is_the_fallback(
    weights: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "toolscript")
    there: Any = lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]  # noqa: E731
    monkeypatch.setattr(onnxruntime, "get_available_providers", there)
    assert providers_for(Device.AUTO) == providers_for(Device.GPU) == there()
    assert providers_for(Device.CPU) == ["CPUExecutionProvider"]
    # The library was built without CUDA: it logs that and falls back.
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        embedder = LocalEmbedder(str(weights), device=Device.AUTO)
    assert "GPU is enabled" in caplog.text
    assert np.linalg.norm(await embedder.embed_query("read a file")) == pytest.approx(1, abs=1e-3)
