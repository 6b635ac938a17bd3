"""`toolscript documents`: what it sends, what it shows, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import commands
from tests.repo.test_generated import RUN, SLOW_TO_IMPORT
from tests.unit.documents.http.builders import Parts, app_of
from tests.unit.documents.http.serving import on_a_thread
from toolscript.cli.documents import snippet_text

pytestmark = [pytest.mark.requirement("DOC-006"), pytest.mark.slow]

TOKEN = "token-of-acme"
EVIL = "\x1b[2Jgone\x07\u202e"


class CommandLine:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0, token: str = TOKEN) -> tuple[str, str]:
        """What it prints, and what it says."""
        mine = {"TOOLSCRIPT_SERVICE_URL": self.url, "TOOLSCRIPT_TOKEN": token, "HOME": str(self.folder)}
        done = commands.run_in(commands.environment(mine), self.folder, "documents", *arguments, code=code)
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


def test_files_folders_and_lines_are_put_and_it_is_told_what_became_of_them(toolscript: CommandLine) -> None:
    toolscript.write("docs/a.md", "# A\n\nText.")
    toolscript.write("docs/b.pdf", "%PDF")
    toolscript.write("c.jsonl", '{"id": "c", "text": "x"}\n{"id": 7}\n')
    shown, said = toolscript("put", "docs", "c.jsonl", code=1)
    assert shown == "2 created, 0 updated, 0 unchanged, 1 refused; 1 file skipped\n"
    assert "docs/b.pdf: is none of .txt, .md" in said
    assert "c.jsonl line 2: id must be text" in said
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


def test_lines_may_come_from_a_pipe(toolscript: CommandLine) -> None:
    mine = {"TOOLSCRIPT_SERVICE_URL": toolscript.url, "TOOLSCRIPT_TOKEN": TOKEN}
    done = commands.run(mine, "documents", "put", "-", standard_input='{"id": "a", "text": "ü"}\n')
    assert done.stdout == "1 created, 0 updated, 0 unchanged, 0 refused\n"


@pytest.mark.requirement("DOC-001")
def test_a_search_shows_a_table_with_snippets(library: CommandLine) -> None:
    shown, said = library("search", "whales in the sea", "--top-k", "1")
    head, row, snippet = shown.splitlines()
    assert head.split() == ["Document", "Score", "Title"]
    assert row.split()[0] == "docs/whales.md"
    assert row.split()[-1] == "Whales"
    assert "Whales are mammals" in snippet
    assert snippet.startswith("    ")
    assert " documents, " in said


@pytest.mark.requirement("DOC-002")
def test_filters_narrow_it_down_with_and_without_a_query(library: CommandLine) -> None:
    answer = library.json("search", "law of the sea", "--filter", "year>=2020", "--filter", "tags in law,tax")
    assert {hit["doc_id"] for hit in answer["hits"]} == {f"law-{year}" for year in range(2020, 2025)}
    answer = library.json("search", "--filter", "year<2017", "--field", "year", "--snippet-chars", "7")
    assert sorted(hit["metadata"]["year"] for hit in answer["hits"]) == [2015, 2016]


@pytest.mark.requirement("DOC-001", "DOC-007")
def test_every_option_reaches_the_search(library: CommandLine, parts: Parts) -> None:
    library("search", "law", "--type", "hybrid", "--fusion", "zscore", "--top-k", "3", "--offset", "1")
    query = parts.searched[-1]["query"]
    assert (query.search_type, query.fusion, query.top_k, query.offset) == ("hybrid", "zscore", 3, 1)
    _, said = library("search", "law", "--rerank", "llm", code=2)
    assert "error: the service answered" in said


@pytest.mark.requirement("DOC-007")
def test_all_is_walked_page_by_page_and_each_page_is_shown_as_it_comes(library: CommandLine) -> None:
    shown, _ = library("search", "--filter", "year exists", "--all", "--top-k", "4", "--json")
    pages = [json.loads(line) for line in shown.splitlines()]
    assert [len(page["hits"]) for page in pages] == [4, 4, 2]
    assert {hit["doc_id"] for page in pages for hit in page["hits"]} == {
        f"law-{year}" for year in range(2015, 2025)
    }
    shown, _ = library("search", "--all")
    assert len([line for line in shown.splitlines() if line.startswith(("law-", "docs/"))]) == 12
    _, said = library("search", "law", "--all", "--offset", "1", code=2)
    assert "exclude each other" in said


def test_nothing_found_is_told_by_the_exit_code(library: CommandLine) -> None:
    shown, said = library("search", "--filter", "year=1", code=1)
    assert (shown, "0 documents" in said) == ("", True)


def test_a_document_is_printed_and_its_metadata_goes_to_the_other_stream(library: CommandLine) -> None:
    shown, said = library("get", "docs/whales.md")
    assert shown == "# Whales\n\nWhales are mammals that live in the sea.\n"
    assert '"title": "Whales"' in said
    assert library.json("get", "docs/deep/bread.txt")["metadata"]["path"] == "docs/deep/bread.txt"
    _, said = library("get", "docs/nothing.md", code=2)
    assert "404 NOT_FOUND" in said


def test_documents_are_deleted_and_those_that_were_not_there_are_named(library: CommandLine) -> None:
    shown, said = library("delete", "law-2015", "law-1815")
    assert shown == "1 deleted, 1 not there\n"
    assert "law-1815 was not there" in said
    library("delete", "law-2015", code=1)
    assert library.json("delete", "law-2016") == {"deleted": ["law-2016"], "missing": []}


def test_what_documents_say_is_shown_and_never_obeyed(toolscript: CommandLine) -> None:
    row = {"id": "evil", "text": f"whale {EVIL} sea", "title": f"T{EVIL}"}
    toolscript.write("a.jsonl", json.dumps(row) + "\n")
    toolscript("put", "a.jsonl")
    for arguments in (("search", "whale"), ("get", "evil"), ("search", "whale", "--json")):
        shown, said = toolscript(*arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(shown + said)


def test_what_matched_is_bold_where_there_is_colour() -> None:
    hit = {"snippet": "a\nwhale \x1b in the sea", "highlights": [[2, 7], [17, 20]]}
    assert snippet_text(hit, colour=False) == "a whale   in the sea"
    assert snippet_text(hit, colour=True) == "a \x1b[1mwhale\x1b[0m   in the \x1b[1msea\x1b[0m"
    wrong = {**hit, "highlights": [[2, 99], [7, 2], [2, 7], [3, 5]]}
    assert snippet_text(wrong, colour=True) == "a \x1b[1mwhale\x1b[0m   in the sea"


@pytest.mark.requirement("DOC-004")
def test_a_token_that_is_not_believed_ends_it_and_is_never_shown(library: CommandLine) -> None:
    for arguments in (("search", "x"), ("get", "x"), ("delete", "x"), ("put", "docs")):
        shown, said = library(*arguments, code=2, token="hunter2")
        assert "401 UNAUTHORIZED" in said
        assert "hunter2" not in shown + said
    library("search", "sea", "--token", TOKEN, token="hunter2")
    _, said = library("search", "x", code=2, token="hunter2\n\u1234")
    assert "TOOLSCRIPT_TOKEN cannot be used" in said
    assert "hunter2" not in said


def test_what_is_not_there_is_said_before_anything_is_sent(library: CommandLine, parts: Parts) -> None:
    sent = len(parts.service.batches)
    _, said = library("put", "docs", "nowhere", code=2)
    assert "there is no nowhere" in said
    assert len(parts.service.batches) == sent


def test_a_search_for_documents_imports_nothing_heavy(library: CommandLine) -> None:
    mine = {**os.environ, "TOOLSCRIPT_SERVICE_URL": library.url, "TOOLSCRIPT_TOKEN": TOKEN}
    for arguments in (["documents", "search", "sea"], ["documents", "put", "docs", "--resume", "state.json"]):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *arguments],
            env=mine,
            cwd=library.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert (SLOW_TO_IMPORT | {"asyncio"}) & set(done.stderr.splitlines()) == set()
