"""`toolscript ingest` like a user runs it, on the real engines with a real model."""

import asyncio
import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import WAIT_SECONDS, command, environment, run_here
from tests.e2e.ingest.holdings import Holdings, forget, holdings, named_library
from tests.unit.core.llm.text_endpoint import TextEndpoint
from toolscript.core.settings.service import Settings

pytestmark = pytest.mark.requirement("KN-004", "KN-005")

BEES = "# Keeping bees\n\n## The hive\n\nA hive needs a dry place.\n\n## Feeding\n\nFeed sugar in autumn.\n"
STEEL = "<html><title>Steel</title><body><h1>Bridges</h1><p>Bridges rust where water stands.</p></body></html>"


@pytest.fixture
def library(engines: Settings, model_folder: str) -> Iterator[dict[str, str]]:
    with named_library(engines) as named:
        yield {**named, "TOOLSCRIPT_EMBEDDING_MODEL": model_folder}
        asyncio.run(forget(named))


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    (folder / "inner").mkdir(parents=True)
    (folder / "bees.md").write_text(BEES, "utf-8")
    (folder / "inner" / "steel.html").write_text(STEEL, "utf-8")
    return folder


def ingested(library: dict[str, str], *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    done = run_here(library, "ingest", *arguments, "--json", code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


def held(library: dict[str, str]) -> Holdings:
    return asyncio.run(holdings(library))


def test_files_go_in_once_change_and_leave_again(library: dict[str, str], shelf: Path) -> None:
    message = ["--base", str(shelf.parent), "--type", "book", "--topic", "Nature", "--author", "Ann"]
    (first,) = ingested(library, str(shelf), *message)
    assert (first["added"], first["chunks"]) == (2, 3)
    before = held(library)
    assert {item["path"]: (item["title"], item["type"]) for item in before["sources"].values()} == {
        "shelf/bees.md": ("Keeping bees", "book"),
        "shelf/inner/steel.html": ("Steel", "book"),
    }
    assert before["chunk points"].keys() == {id_[8:] for id_ in before["chunks"]}
    positions = {item["content"]: item["position"] for item in before["chunks"].values()}
    assert [item["section"] for text, item in positions.items() if "sugar" in text] == ["Feeding"]
    assert ingested(library, str(shelf), *message)[-1]["unchanged"] == 2
    assert held(library) == before
    (shelf / "bad.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (shelf / "inner" / "steel.html").unlink()
    skipped, dry = ingested(library, str(shelf), *message, "--prune", "--dry-run", code=2)
    assert (skipped["path"], dry["removed"], dry["unchanged"]) == ("shelf/bad.pdf", 1, 1)
    assert held(library) == before
    assert ingested(library, str(shelf), *message, "--prune", code=2)[-1]["removed"] == 1
    after = held(library)
    assert [item["path"] for item in after["sources"].values()] == ["shelf/bees.md"]
    assert after["chunk points"].keys() == {id_[8:] for id_ in after["chunks"]}


@pytest.mark.states("S4-186")
def test_another_model_is_refused_until_the_library_is_reindexed_for_it(
    library: dict[str, str], shelf: Path, tmp_path: Path
) -> None:
    """The same model by another name is another model."""
    ingested(library, str(shelf))
    before = held(library)
    renamed = tmp_path / "renamed"
    renamed.symlink_to(library["TOOLSCRIPT_EMBEDDING_MODEL"])
    other = {**library, "TOOLSCRIPT_EMBEDDING_MODEL": str(renamed)}
    refused = run_here(other, "ingest", str(shelf), code=2).stderr
    assert "toolscript ingest --reindex" in refused
    (done,) = [json.loads(run_here(other, "ingest", "--reindex", "--drop-previous", "--json").stdout)]
    assert (done["sources"], done["points"], done["left"], done["dropped"]) == (2, 3, 0, True)
    assert ingested(other, str(shelf))[-1]["unchanged"] == 2
    assert held(other)["chunk points"] == before["chunk points"]


def warns(body: dict[str, Any]) -> object:
    """Return one warning from each chunk, verbatim."""
    lines = [line for line in body["messages"][-1]["content"].splitlines() if line.startswith("{")]
    passages = [json.loads(line) for line in lines]
    return {
        "passages": [
            {
                "passage": passage["passage"],
                "extractions": [{"type": "warning", "title": "Mind", "text": passage["text"], "topics": ["Care"]}],
            }
            for passage in passages
        ]
    }


def test_a_language_model_extracts_and_its_cost_is_in_the_report(library: dict[str, str], shelf: Path) -> None:
    with TextEndpoint(model=warns, used=(1_000, 100)) as endpoint:
        output = {**library, "TOOLSCRIPT_TEXT_URL": endpoint.url, "TOOLSCRIPT_TEXT_MODEL": "m"}
        (report,) = ingested(output, str(shelf))
        assert (report["extractions"], report["calls"], report["prompt_tokens"]) == (3, 2, 2_000)
        assert ingested(output, str(shelf))[-1]["calls"] == 0
    now = held(library)
    assert {(extraction["type"], *extraction["topics"]) for extraction in now["extractions"].values()} == {
        ("warning", "care")
    }
    assert {extraction["chunk_id"] for extraction in now["extractions"].values()} == now["chunks"].keys()
    assert now["extraction points"].keys() == {id_[8:] for id_ in now["extractions"]}


@contextmanager
def watching(library: dict[str, str], shelf: Path) -> Iterator[tuple["subprocess.Popen[str]", "queue.Queue[Any]"]]:
    process = subprocess.Popen(
        command("ingest", str(shelf), "--watch", "--json"),
        env=environment(library),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines: queue.Queue[Any] = queue.Queue()
    out = process.stdout

    def read() -> None:
        for line in out:
            lines.put(json.loads(line))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        yield process, lines
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(WAIT_SECONDS)
        reading.join(WAIT_SECONDS)
        process.stdout.close()
        if process.stderr:
            process.stderr.close()


def test_watching_follows_files_until_it_is_stopped(library: dict[str, str], shelf: Path) -> None:
    with watching(library, shelf) as (process, lines):

        def until(path: Path, outcome: str) -> None:
            while (line := lines.get(timeout=WAIT_SECONDS)).get("path") != str(path) or line["outcome"] != outcome:
                pass

        until(shelf / "inner" / "steel.html", "added")
        while "added" not in (report := lines.get(timeout=WAIT_SECONDS)):
            pass
        assert report["added"] == 2
        (shelf / "new.md").write_text("# New\n\nIt was not there before.", "utf-8")
        until(shelf / "new.md", "added")
        (shelf / "bees.md").write_text(BEES.replace("sugar", "honey"), "utf-8")
        until(shelf / "bees.md", "updated")
        (shelf / "inner").rename(shelf / ".inner")
        until(shelf / "inner" / "steel.html", "removed")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
    now = held(library)
    assert {Path(source["path"]).name for source in now["sources"].values()} == {"bees.md", "new.md"}
    assert now["chunk points"].keys() == {id_[8:] for id_ in now["chunks"]}
    assert all("claim" not in source for source in now["sources"].values())


def test_without_a_library_the_error_names_the_setting(tmp_path: Path) -> None:
    message = run_here({}, "ingest", str(tmp_path), code=2).stderr
    assert "TOOLSCRIPT_MONGO_WRITER_URL" in message
