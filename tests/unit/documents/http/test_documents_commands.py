"""`toolscript documents`: its requests, its output and its exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import commands
from tests.repo.test_start import RUN, SLOW_TO_IMPORT
from tests.unit.documents.http.builders import Parts, app_of
from tests.unit.documents.http.serving import on_a_thread
from toolscript.cli.documents import snippet_text
from toolscript.client.answers.documents import DocumentHit

pytestmark = [pytest.mark.requirement("DOC-006"), pytest.mark.slow]

TOKEN = "token-of-acme"
EVIL = "\x1b[2Jgone\x07\u202e"


class CommandLine:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0, token: str = TOKEN) -> tuple[str, str]:
        """Run the command; return stdout and stderr."""
        variables = {"TOOLSCRIPT_SERVICE_URL": self.url, "TOOLSCRIPT_TOKEN": token, "HOME": str(self.folder)}
        done = commands.run_in(commands.environment(variables), self.folder, "documents", *arguments, code=code)
        return done.stdout, done.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code)[0])

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return name


@pytest.fixture
def toolscript(parts: Parts, tmp_path: Path) -> Iterator[CommandLine]:
    with on_a_thread(app_of(parts.routes())) as url:
        yield CommandLine(url, tmp_path)


@pytest.fixture
def library(toolscript: CommandLine) -> CommandLine:
    toolscript.write("docs/whales.md", "# Whales\n\nWhales are mammals that live in the sea.")
    toolscript.write("docs/deep/bread.txt", "How to bake bread with little yeast.")
    rows = [
        {
            "id": f"law-{year}",
            "text": f"The law of the sea of {year}.",
            "metadata": {"year": year, "tags": ["law"]},
        }
        for year in range(2015, 2025)
    ]
    toolscript.write("laws.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    toolscript("put", "docs", "laws.jsonl")
    return toolscript


def test_put_uploads_files_folders_and_lines_and_reports_the_outcomes(toolscript: CommandLine) -> None:
    toolscript.write("docs/a.md", "# A\n\nText.")
    toolscript.write("docs/b.pdf", "%PDF")
    toolscript.write("c.jsonl", '{"id": "c", "text": "x"}\n{"id": 7}\n')
    stdout, stderr = toolscript("put", "docs", "c.jsonl", code=1)
    assert stdout == "2 created, 0 updated, 0 unchanged, 1 refused; 1 file skipped\n"
    assert "docs/b.pdf: is none of .txt, .md" in stderr
    assert "c.jsonl line 2: id must be text" in stderr
    toolscript.write("docs/a.md", "# A\n\nOther text.")
    report = toolscript.json("put", "docs/a.md", "c.jsonl", code=1)
    assert {name: report[name] for name in ("created", "updated", "unchanged", "refused", "skipped")} == {
        "created": 0,
        "updated": 1,
        "unchanged": 1,
        "refused": 1,
        "skipped": 0,
    }
    assert report["reasons"] == [{"where": "c.jsonl line 2", "reason": "id must be text"}]


def test_lines_may_come_from_stdin(toolscript: CommandLine) -> None:
    variables = {"TOOLSCRIPT_SERVICE_URL": toolscript.url, "TOOLSCRIPT_TOKEN": TOKEN}
    done = commands.run(variables, "documents", "put", "-", standard_input='{"id": "a", "text": "ü"}\n')
    assert done.stdout == "1 created, 0 updated, 0 unchanged, 0 refused\n"


@pytest.mark.requirement("DOC-001")
def test_a_search_shows_a_table_with_snippets(library: CommandLine) -> None:
    stdout, stderr = library("search", "whales in the sea", "--limit", "1")
    head, row, snippet = stdout.splitlines()
    assert head.split() == ["Document", "Score", "Title"]
    assert row.split()[0] == "docs/whales.md"
    assert row.split()[-1] == "Whales"
    assert "Whales are mammals" in snippet
    assert snippet.startswith("    ")
    assert " documents, " in stderr


@pytest.mark.requirement("DOC-002")
def test_filters_apply_with_and_without_a_query(library: CommandLine) -> None:
    answer = library.json("search", "law of the sea", "--filter", "year>=2020", "--filter", "tags in law,tax")
    assert {hit["id"] for hit in answer["results"]} == {f"law-{year}" for year in range(2020, 2025)}
    answer = library.json("search", "--filter", "year<2017", "--field", "year", "--snippet-chars", "7")
    assert sorted(hit["metadata"]["year"] for hit in answer["results"]) == [2015, 2016]


@pytest.mark.requirement("DOC-001", "DOC-007")
def test_every_option_reaches_the_search(library: CommandLine, parts: Parts) -> None:
    library("search", "law", "--search-type", "hybrid", "--fusion", "zscore", "--limit", "3", "--offset", "1")
    query = parts.searched[-1]["query"]
    assert (query.search_type, query.fusion, query.top_k, query.offset) == ("hybrid", "zscore", 3, 1)
    _, stderr = library("search", "law", "--rerank", "llm", code=2)
    assert "error: rerank llm is not set up here" in stderr


@pytest.mark.requirement("DOC-007")
def test_all_pages_are_fetched_and_each_is_printed_as_it_arrives(library: CommandLine) -> None:
    stdout, _ = library("search", "--filter", "year exists", "--all", "--limit", "4", "--json")
    pages = [json.loads(line) for line in stdout.splitlines()]
    assert [len(page["results"]) for page in pages] == [4, 4, 2]
    assert {hit["id"] for page in pages for hit in page["results"]} == {
        f"law-{year}" for year in range(2015, 2025)
    }
    stdout, _ = library("search", "--all")
    assert len([line for line in stdout.splitlines() if line.startswith(("law-", "docs/"))]) == 12
    _, stderr = library("search", "law", "--all", "--offset", "1", code=2)
    assert "exclude each other" in stderr


def test_the_exit_code_is_1_without_results(library: CommandLine) -> None:
    stdout, stderr = library("search", "--filter", "year=1", code=1)
    assert (stdout, "0 documents" in stderr) == ("", True)


def test_get_prints_the_text_to_stdout_and_the_metadata_to_stderr(library: CommandLine) -> None:
    stdout, stderr = library("get", "docs/whales.md")
    assert stdout == "# Whales\n\nWhales are mammals that live in the sea.\n"
    assert '"title": "Whales"' in stderr
    assert library.json("get", "docs/deep/bread.txt")["metadata"]["path"] == "docs/deep/bread.txt"
    _, stderr = library("get", "docs/nothing.md", code=2)
    assert "there is no such document" in stderr


def test_delete_removes_documents_and_names_the_missing_ones(library: CommandLine) -> None:
    stdout, stderr = library("delete", "law-2015", "law-1815")
    assert stdout == "1 deleted, 1 missing\n"
    assert "law-1815 does not exist" in stderr
    library("delete", "law-2015", code=1)
    assert library.json("delete", "law-2016") == {"deleted": ["law-2016"], "missing": []}


def test_control_characters_in_documents_are_not_printed(toolscript: CommandLine) -> None:
    row = {"id": "evil", "text": f"whale {EVIL} sea", "title": f"T{EVIL}"}
    toolscript.write("a.jsonl", json.dumps(row) + "\n")
    toolscript("put", "a.jsonl")
    for arguments in (("search", "whale"), ("get", "evil"), ("search", "whale", "--json")):
        stdout, stderr = toolscript(*arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(stdout + stderr)


def test_matches_are_bold_in_colour_output() -> None:
    fields = {"id": "a", "score": 1.0, "metadata": {}, "snippet_start": 0, "snippet_end": 9, "chunk": 0}
    shown = {**fields, "snippet": "a\nwhale \x1b in the sea", "highlights": [[2, 7], [17, 20]]}
    hit = DocumentHit.from_json(shown)
    assert snippet_text(hit, colour=False) == "a whale   in the sea"
    assert snippet_text(hit, colour=True) == "a \x1b[1mwhale\x1b[0m   in the \x1b[1msea\x1b[0m"
    wrong = DocumentHit.from_json({**shown, "highlights": [[2, 99], [7, 2], [2, 7], [3, 5]]})
    assert snippet_text(wrong, colour=True) == "a \x1b[1mwhale\x1b[0m   in the sea"


@pytest.mark.requirement("DOC-004")
def test_an_invalid_token_fails_the_command_and_is_never_printed(library: CommandLine) -> None:
    for arguments in (("search", "x"), ("get", "x"), ("delete", "x"), ("put", "docs")):
        stdout, stderr = library(*arguments, code=2, token="hunter2")
        assert "the token is unknown" in stderr
        assert "hunter2" not in stdout + stderr
    library("search", "sea", "--token", TOKEN, token="hunter2")
    _, stderr = library("search", "x", code=2, token="hunter2\n\u1234")
    assert "TOOLSCRIPT_TOKEN cannot be used" in stderr
    assert "hunter2" not in stderr


def test_a_missing_path_is_reported_before_anything_is_sent(library: CommandLine, parts: Parts) -> None:
    sent = len(parts.service.batches)
    _, stderr = library("put", "docs", "nowhere", code=2)
    assert "there is no nowhere" in stderr
    assert len(parts.service.batches) == sent


def test_a_search_for_documents_imports_nothing_heavy(library: CommandLine) -> None:
    variables = {**os.environ, "TOOLSCRIPT_SERVICE_URL": library.url, "TOOLSCRIPT_TOKEN": TOKEN}
    for arguments in (["documents", "search", "sea"], ["documents", "put", "docs", "--resume", "state.json"]):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *arguments],
            env=variables,
            cwd=library.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert (SLOW_TO_IMPORT | {"asyncio"}) & set(done.stderr.splitlines()) == set()
