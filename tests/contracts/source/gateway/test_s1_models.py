"""The embedding model, its cache file, and updates after a change of a tool."""

import json
from pathlib import Path

import onnxruntime
import pytest

from tests.e2e.gateway.caches import card_of, embeddings_of, file_name, is_poisoned, poison, read
from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Machine, new_machine, until
from toolscript.core.embedding.engine import Device, providers_for

READ = tool("files", "read_file", "Read the contents of a file from disk", path="where the file is")
MAIL = tool("mail", "send_email", "Send an e-mail message to somebody", to="whom")


@pytest.fixture
def files(tmp_path: Path, weights: Path) -> Machine:
    machine = new_machine(tmp_path / "machine", weights).here()
    offer(machine, READ)
    return machine


def offer(machine: Machine, *tools: dict[str, object]) -> None:
    machine.configure(catalog_servers(write_catalog(machine.folder / "tools.jsonl", tools), ["files"]))


def kept_hash(machine: Machine) -> str:
    machine.run("search", "read a file", "--refresh")
    return str(read(embeddings_of(machine))["tools"]["files__read_file"]["hash"])


@pytest.mark.states("S1-056")
def test_a_tool_s_hash_is_of_its_description_and_its_schema(files: Machine) -> None:
    first = kept_hash(files)
    assert kept_hash(files) == first
    offer(files, {**READ, "description": "Read a file"})
    described = kept_hash(files)
    offer(files, {**READ, "input_schema": {"type": "object", "properties": {"uri": {"type": "string"}}}})
    assert len({first, described, kept_hash(files)}) == 3
    offer(files, READ)
    assert kept_hash(files) == first


@pytest.mark.states("S1-043", "S1-143", "S1-144")
def test_each_config_file_has_its_own_cache_and_one_can_be_named(files: Machine) -> None:
    other = files.folder / "other" / ".toolscript.json"
    other.parent.mkdir()
    catalog = write_catalog(files.folder / "mail.jsonl", [MAIL])
    other.write_text(json.dumps({"mcpServers": catalog_servers(catalog, ["mail"])}), "utf-8")
    files.run("search", "read a file", "--threshold", "0")
    files.run("search", "send a message", "--threshold", "0", "--config", str(other))
    kept = {path.name: {*read(path)["tools"]} for path in embeddings_of(files).parent.iterdir()}
    assert kept == {file_name(["files"]): {"files__read_file"}, file_name(["mail"]): {"mail__send_email"}}


@pytest.mark.states("S1-027", "S1-046")
def test_a_model_of_a_flag_is_for_that_search_alone(files: Machine, weights: Path) -> None:
    other = files.folder / "other-model"
    other.symlink_to(weights, target_is_directory=True)
    used = []
    for arguments in ((), ("--model", str(other)), ()):
        files.run("search", "read a file", *arguments)
        used.append(card_of(embeddings_of(files))["name"])
    assert used == [weights.name, "other-model", weights.name]


@pytest.mark.states("S1-049", "S1-051", "S1-145")
def test_a_gateway_that_starts_with_another_model_does_not_use_the_file(files: Machine, weights: Path) -> None:
    kept_hash(files)
    path = embeddings_of(files)
    poison(path)
    other = files.folder / "other-model"
    other.symlink_to(weights, target_is_directory=True)
    with files.also(TOOLSCRIPT_SEARCH_MODEL=str(other)).gateway() as gateway:
        gateway.until_embedded(1)
        until(lambda: path.exists() and card_of(path)["name"] == "other-model", "a new file")
    assert not is_poisoned(path, "files__read_file")


@pytest.mark.states("S1-022", "S1-134")
@pytest.mark.parametrize("gpu", ["CUDA", "CoreML", "ROCM", "Dml"])
def test_a_gpu_of_any_maker_is_tried_before_the_cpu(monkeypatch: pytest.MonkeyPatch, gpu: str) -> None:
    there = [f"{gpu}ExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: there)
    assert providers_for(Device.AUTO) == providers_for(Device.GPU) == there
    assert providers_for(Device.CPU) == there[1:]
