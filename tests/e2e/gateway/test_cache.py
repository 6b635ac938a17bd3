"""Embeddings on disk, by servers and model; nothing is embedded twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway.caches import card_of, embeddings_of, is_poisoned, meaning, poison, read
from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, copy_of, new_machine, until
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-007")

READ = tool("files", "read_file", "Read the contents of a file from disk", path="where the file is")
MOVE = tool("files", "move_file", "Move or rename a file", source="from", destination="to")
MAIL = tool("mail", "send_email", "Send an e-mail message to somebody", to="whom")
FILES = {"files__read_file", "files__move_file"}
QUERY = str(READ["description"])
# Similarity of a text to itself, which no poisoned vector reaches.
NEAR, FAR = 0.5, 0.3


@pytest.fixture(scope="module")
def searched_once(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Machine:
    """Return a machine with a server of two tools after one search. Read-only."""
    machine = new_machine(tmp_path_factory.mktemp("cache") / "machine", weights)
    catalog = write_catalog(machine.folder / "tools.jsonl", [READ, MOVE, MAIL])
    machine.configure(catalog_servers(catalog, ["files"]))
    machine.run("search", QUERY)
    return machine.here()


@pytest.fixture
def spare(searched_once: Machine, tmp_path: Path) -> Machine:
    """Return a copy that a test may change."""
    return copy_of(searched_once, tmp_path / "machine")


def explained(machine: Machine, *arguments: str) -> dict[str, Any]:
    return machine.json("search", QUERY, "--explain", "--threshold", "0", *arguments)


def ask_gateway(gateway: Gateway) -> dict[str, Any]:
    return gateway.search(QUERY, explain=1, threshold=0)


def until_kept(path: Path, tools: set[str]) -> None:
    until(lambda: path.exists() and {*read(path)["tools"]} == tools, f"{tools} in {path}")


@scenario("Cache location resolution")
@scenario("Cache creation on first indexing")
@scenario("Configuration-aware cache lookup")
@pytest.mark.states("S1-036", "S1-037", "S1-041", "S1-042", "S1-044", "S1-045", "S1-046", "S1-047", "S1-048")
def test_a_first_search_keeps_embeddings_in_the_home_folder_under_its_servers_names(
    searched_once: Machine, weights: Path
) -> None:
    (path,) = (searched_once.home / ".toolscript" / "cache" / "embeddings").iterdir()
    assert path == embeddings_of(searched_once)
    assert {*read(path)["tools"]} == FILES
    assert all(len(entry["hash"]) == 64 for entry in read(path)["tools"].values())
    card = card_of(path)
    assert (card["name"], card["dimensions"]) == (weights.name, 384)
    assert card["revision"]


@scenario("Custom data directory via environment variable")
@scenario("Custom data directory via CLI flag")
@pytest.mark.states("S1-038", "S1-039", "S1-040")
def test_a_data_folder_is_taken_from_the_flag_then_from_the_environment(spare: Machine) -> None:
    by_environment, by_flag = spare.folder / "of" / "environment", spare.folder / "of" / "flag"
    output = spare.also(TOOLSCRIPT_DATA_DIR=str(by_environment))
    output.run("search", QUERY, "--data-dir", str(by_flag))
    assert embeddings_of(spare, by_flag).is_file()
    assert not by_environment.exists()
    output.run("search", QUERY)
    assert embeddings_of(spare, by_environment).is_file()


@scenario("Configuration-aware cache lookup")
@pytest.mark.states("S1-043")
def test_each_list_of_servers_has_its_own_file(spare: Machine) -> None:
    first = embeddings_of(spare)
    spare.configure(catalog_servers(spare.folder / "tools.jsonl", ["mail"]))
    spare.run("search", "send a message")
    assert embeddings_of(spare) != first
    assert {*read(embeddings_of(spare))["tools"]} == {"mail__send_email"}
    assert {*read(first)["tools"]} == FILES


@scenario("Cache validation on startup")
@pytest.mark.states("S1-035", "S1-050", "S1-145")
def test_a_second_start_takes_all_vectors_from_the_file_and_leaves_it_as_it_is(spare: Machine) -> None:
    path = embeddings_of(spare)
    poison(path)
    before = path.stat().st_mtime_ns
    with spare.gateway() as gateway:
        answer = ask_gateway(gateway.until_embedded(2))
        until(lambda: gateway.server("files").get("status") == "ready", "the server's own answer")
        assert meaning(answer, "files__read_file") < FAR
    assert path.stat().st_mtime_ns == before
    assert meaning(explained(spare), "files__read_file") < FAR


@scenario("Cache validation on startup")
@pytest.mark.states("S1-049", "S1-051")
def test_another_model_sets_the_file_aside_and_the_first_one_finds_it_there_again(
    spare: Machine, weights: Path
) -> None:
    other = spare.folder / "other-model"
    other.symlink_to(weights, target_is_directory=True)
    path = embeddings_of(spare)
    poison(path)
    done = spare.run("search", QUERY, "--explain", "--json", "--model", str(other))
    assert "a file of embeddings was set aside" in done.stderr
    assert "made by another model" in done.stderr
    assert card_of(path)["name"] == "other-model"
    assert not is_poisoned(path, "files__read_file")
    assert len([*path.parent.glob(f"{path.name}.of-*")]) == 1
    assert meaning(explained(spare), "files__read_file") < FAR


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _no_vector(path: Path) -> None:
    path.write_text(path.read_text("utf-8").replace('"vector":"', '"vector":"AAAA'), "utf-8")


@scenario("Cache validation on startup")
@pytest.mark.parametrize("spoil", [_cut, _no_vector, lambda path: path.write_bytes(b"\0\xff[]")])
@pytest.mark.states("S1-052")
def test_a_broken_file_is_set_aside_and_made_anew(spare: Machine, spoil: Callable[[Path], object]) -> None:
    path = embeddings_of(spare)
    spoil(path)
    done = spare.run("search", QUERY, "--json")
    assert "a file of embeddings was set aside" in done.stderr
    assert path.with_name(f"{path.name}.broken").exists()
    assert {*read(path)["tools"]} == FILES
    assert '"semantic": true' in done.stdout


def test_an_unwritable_cache_is_reported_and_not_fatal(spare: Machine) -> None:
    """Files take the place of the folders, which blocks root as well."""
    data = spare.folder / "data"
    (data / "cache").mkdir(parents=True)
    for kind in ("embeddings", "tools"):
        (data / "cache" / kind).write_text("no folder", "utf-8")
    done = spare.run("search", QUERY, "--json", "--data-dir", str(data))
    assert "the embeddings cannot be cached" in done.stderr
    assert "the offers cannot be cached" in done.stderr
    assert '"semantic": true' in done.stdout
    with spare.also(TOOLSCRIPT_DATA_DIR=str(data)).gateway() as gateway:
        assert ask_gateway(gateway.until_embedded(2))["results"][0]["toolId"] == "files__read_file"


@scenario("Cache invalidation on schema change")
@pytest.mark.states("S1-057", "S1-058")
def test_a_changed_schema_embeds_this_tool_again_and_no_other(spare: Machine) -> None:
    path = embeddings_of(spare)
    poison(path)
    hashes = {name: entry["hash"] for name, entry in read(path)["tools"].items()}
    changed = {**READ, "input_schema": {"type": "object", "properties": {"uri": {"type": "string"}}}}
    catalog = write_catalog(spare.folder / "changed.jsonl", [changed, MOVE])
    spare.configure(catalog_servers(catalog, ["files"]))
    with spare.gateway() as gateway:
        gateway.until_embedded(2)
        assert meaning(ask_gateway(gateway), "files__read_file") > NEAR
        until(lambda: not is_poisoned(path, "files__read_file"), "the new vector in the file")
    assert not is_poisoned(path, "files__read_file")
    assert is_poisoned(path, "files__move_file")
    assert read(path)["tools"]["files__read_file"]["hash"] != hashes["files__read_file"]
    assert read(path)["tools"]["files__move_file"]["hash"] == hashes["files__move_file"]


@scenario("Incremental cache updates")
@pytest.mark.states("S1-053", "S1-054", "S1-055", "S1-146")
def test_a_server_added_while_the_gateway_runs_makes_a_new_file_and_embeds_only_what_is_new(
    spare: Machine,
) -> None:
    before = embeddings_of(spare)
    poison(before)
    with spare.gateway() as gateway:
        gateway.until_embedded(2)
        spare.configure(catalog_servers(spare.folder / "tools.jsonl", ["files", "mail"]))
        gateway.until_embedded(3)
        after = embeddings_of(spare)
        until_kept(after, {*FILES, "mail__send_email"})
    assert after != before
    assert before.exists()
    assert not is_poisoned(after, "mail__send_email")
    assert all(is_poisoned(after, name) for name in FILES)


@scenario("Disable embedding cache via environment")
@pytest.mark.states("S1-129", "S1-130", "S1-131")
def test_without_a_cache_nothing_is_read_and_nothing_written(spare: Machine) -> None:
    path = embeddings_of(spare)
    poison(path)
    before = {file: file.stat().st_mtime_ns for file in (spare.data / "cache").rglob("*")}
    with spare.also(TOOLSCRIPT_SEARCH_NO_CACHE="true").gateway() as gateway:
        assert meaning(ask_gateway(gateway.until_embedded(2)), "files__read_file") > NEAR
    elsewhere = spare.folder / "empty"
    spare.also(TOOLSCRIPT_SEARCH_NO_CACHE="true").run("search", QUERY, "--data-dir", str(elsewhere))
    assert not [*elsewhere.rglob("*.json")]
    assert {file: file.stat().st_mtime_ns for file in (spare.data / "cache").rglob("*")} == before


def test_tools_that_were_known_before_the_model_came_are_kept_once_it_has(spare: Machine) -> None:
    """The model becomes available during a search: its embeddings must not be lost."""
    path = embeddings_of(spare)
    path.unlink()
    assert explained(spare)["semantic"] is True
    assert {*read(path)["tools"]} == FILES
