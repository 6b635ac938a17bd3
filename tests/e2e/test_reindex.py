"""A change of model during searches: no request fails, and no response mixes two models."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, run_here, serving
from tests.support.audit_entries import by_me

QUERIES = ("make a new invoice", "throw away the playlist", "share photos", "look for a flight", "list servers")


def answer_of(address: str, query: str, search_type: str) -> dict[str, Any]:
    body = json.dumps({"query": query, "search_type": search_type, "tool_threshold": 0.0}).encode()
    request = urllib.request.Request(f"{address}/api/v1/search", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return dict(json.load(response))


def ask(address: str, query: str) -> tuple[str, list[str]]:
    """Return the fingerprint of the index, and the hits with scores."""
    answer = answer_of(address, query, "semantic")
    assert answer["metadata"]["degraded"] == []
    return answer["metadata"]["index"], [f"{tool['name']} {tool['score']:.4f}" for tool in answer["tools"]]


@contextmanager
def searching(address: str, seen: list[tuple[str, str, list[str]]]) -> Iterator[None]:
    """Search repeatedly until the block ends; a failed request fails the test."""
    stop, failures = threading.Event(), list[BaseException]()

    def search() -> None:
        try:
            while not stop.is_set():
                seen.extend((query, *ask(address, query)) for query in QUERIES)
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)

    thread = threading.Thread(target=search)
    thread.start()
    yield
    stop.set()
    thread.join()
    assert failures == []


@pytest.fixture
def with_model(installation: Installation) -> Callable[[str], dict[str, str]]:
    return lambda model: {**installation.environment, "TOOLSCRIPT_EMBEDDING_MODEL": model}


@pytest.mark.requirement("SK-003")
def test_reindexing_to_another_model_fails_no_search_and_mixes_no_answer(
    with_model: Callable[[str], dict[str, str]], model_folder: str, other_model: str, tmp_path: Path
) -> None:
    old, new = with_model(model_folder), with_model(other_model)
    run_here(old, "sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(120))))
    run_here(old, "worker", "--drain")
    seen: list[tuple[str, str, list[str]]] = []
    with serving(old) as old_address:
        old_answers = {query: ask(old_address, query) for query in QUERIES}
        with searching(old_address, seen):
            live = json.loads(run(new, "reindex", "--json").stdout)["live"]
            with serving(new) as new_address:
                new_answers = {query: ask(new_address, query) for query in QUERIES}
    assert seen
    assert all((index, result) == old_answers[query] for query, index, result in seen)
    assert {index for index, _ in new_answers.values()} == {live}
    assert live not in {index for index, _ in old_answers.values()}
    assert [result for _, result in new_answers.values()] != [result for _, result in old_answers.values()]

    assert run_here(new, "doctor", "--index", "--json").returncode == 0
    assert len(json.loads(run_here(new, "reindex", "--drop-previous", "--json").stdout)["dropped"]) == 1


@pytest.mark.nightly
@pytest.mark.requirement("SK-003")
def test_until_the_reindex_everything_uses_the_model_of_the_live_index(
    with_model: Callable[[str], dict[str, str]], model_folder: str, other_model: str, tmp_path: Path
) -> None:
    old, new = with_model(model_folder), with_model(other_model)
    rows = catalog_files.rows(20)
    run_here(old, "sync", str(catalog_files.write(tmp_path / "items.jsonl", rows)))
    run_here(old, "worker", "--drain")
    with serving(old) as address:
        answers = {query: ask(address, query) for query in QUERIES}
    with serving(new) as address:
        assert {query: ask(address, query) for query in QUERIES} == answers
    rows[0] = {**rows[0], "description": "Waters the plants on the balcony."}
    run_here(new, "sync", str(catalog_files.write(tmp_path / "items.jsonl", rows)))
    assert json.loads(run_here(new, "worker", "--drain", "--json").stdout)["indexed"] == 1
    assert json.loads(run_here(new, "doctor", "--index", "--json").stdout)["healthy"]
    assert by_me(new, "index.switch", "index.drop", "index.repair") == [("index.switch", 1)]


@pytest.mark.nightly
@pytest.mark.requirement("SK-003")
def test_without_its_model_search_is_sparse_and_the_log_names_the_setting(
    installation: Installation, other_model: str, tmp_path: Path
) -> None:
    item = {**installation.environment, "TOOLSCRIPT_EMBEDDING_MODEL": other_model}
    run_here(item, "sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(20))))
    run_here(item, "worker", "--drain")
    moved = tmp_path / "elsewhere" / Path(other_model).name
    moved.parent.mkdir()
    Path(other_model).rename(moved)
    with serving(installation.environment) as address:
        answer = answer_of(address, "make a new invoice", "hybrid")
    assert answer["metadata"]["degraded"] == ["embedding"]
    assert answer["tools"]
    refused = run_here(installation.environment, "worker", "--drain", code=2).stderr
    assert "TOOLSCRIPT_TOOLS_MODEL" in refused
    assert "toolscript reindex tools" in refused
    with serving({**installation.environment, "TOOLSCRIPT_TOOLS_MODEL": str(moved)}) as address:
        ask(address, "make a new invoice")


@pytest.mark.requirement("SK-003", "SK-009")
def test_both_index_versions_follow_changes_until_the_old_one_is_dropped(
    with_model: Callable[[str], dict[str, str]], model_folder: str, other_model: str, tmp_path: Path
) -> None:
    old, new = with_model(model_folder), with_model(other_model)
    rows = catalog_files.rows(20)
    run_here(old, "sync", str(catalog_files.write(tmp_path / "items.jsonl", rows)))
    run_here(old, "worker", "--drain")
    run_here(new, "reindex")
    rows[0] = {**rows[0], "description": "Waters the plants on the balcony."}
    run_here(old, "sync", str(catalog_files.write(tmp_path / "items.jsonl", rows)))
    assert json.loads(run_here(old, "worker", "--drain", "--json").stdout)["indexed"] == 1
    assert json.loads(run_here(new, "worker", "--drain", "--json").stdout)["indexed"] == 1
    assert json.loads(run_here(new, "doctor", "--index", "--json").stdout)["healthy"]
