"""eval make on the command line: its requests, its output, and the next step."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.cli.commands import CommandLine
from toolscript.cli.app import run
from toolscript.core.errors import InvalidRequest
from toolscript.core.values import OnProgress
from toolscript_eval.cli import evaluate_commands
from toolscript_eval.dataset import WrittenDraft

CATALOG = Path(__file__).parents[2] / "golden" / "tools.jsonl"


@dataclass
class Drafts:
    """Double of the drafting; records its requests."""

    refused_lines: int = 0
    error: Exception | None = None
    asked: list[tuple[Path, Mapping[str, object]]] = field(default_factory=list)

    def make_draft(
        self,
        folder: Path,
        *,
        tools: Path | None,
        flags: Mapping[str, object],
        per_kind: int,
        seed: int,
        force: bool,
        on_progress: OnProgress,
    ) -> WrittenDraft:
        options = {"tools": tools, "flags": flags, "per_kind": per_kind, "seed": seed, "force": force}
        self.asked.append((folder, options))
        if self.error:
            raise self.error
        return WrittenDraft(str(folder), 1234, {"exact": 20, "typo": 18}, self.refused_lines)


@pytest.fixture
def drafts() -> Drafts:
    return Drafts()


@pytest.fixture
def command(drafts: Drafts, monkeypatch: pytest.MonkeyPatch) -> "Command":
    return Command(drafts, monkeypatch)


class Command:
    def __init__(self, drafts: Drafts, monkeypatch: pytest.MonkeyPatch) -> None:
        self._app = evaluate_commands()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr("toolscript_eval.gateway.make_draft", drafts.make_draft)

    def __call__(self, *arguments: str) -> int:
        self._monkeypatch.setattr(sys, "argv", ["eval", *arguments])
        with pytest.raises(SystemExit) as ended:
            run(self._app)
        return int(ended.value.code or 0)


def test_the_command_prints_counts_by_kind_and_the_next_step(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("make", "mine") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "1,234 tools and 38 queries are in mine"
    assert [line.split() for line in out.splitlines()[1:]] == [["exact", "20"], ["typo", "18"]]
    assert "edit queries.jsonl" in err
    assert "`toolscript-eval --dataset mine`" in err


def test_skipped_lines_are_counted(drafts: Drafts, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    drafts.refused_lines = 7
    command("make", "mine")
    assert "7 lines" in capsys.readouterr().out


def test_as_json_the_result_is_one_line(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("make", "mine", "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["folder"], output["queries"], output["counts"]) == ("mine", 38, {"exact": 20, "typo": 18})


def test_the_whole_command_line_drafts_from_a_file(toolscript: CommandLine, tmp_path: Path) -> None:
    ended = toolscript("eval", "make", str(tmp_path / "set"), "--tools", str(CATALOG), "--per-kind", "2", "--json")
    output = json.loads(ended.out)
    assert (ended.code, output["queries"], set(output["counts"].values())) == (0, 8, {2})
    assert len((tmp_path / "set" / "queries.jsonl").read_text("utf-8").splitlines()) == 8


def test_every_option_is_passed_on(drafts: Drafts, command: Command) -> None:
    options = ["--per-kind", "3", "--seed", "9", "--text-model", "m", "--text-url", "http://x/v1", "--force"]
    assert command("make", "mine", *options, "--tools", "t.jsonl", "--config", "c", "--data-dir", "d") == 0
    ((folder, request),) = drafts.asked
    flags = request["flags"]
    assert (folder, request["tools"], request["per_kind"], request["seed"]) == (
        Path("mine"),
        Path("t.jsonl"),
        3,
        9,
    )
    assert request["force"] is True
    assert isinstance(flags, dict)
    assert [flags[name] for name in ("text_model", "text_url", "config", "data_dir")] == [
        "m",
        "http://x/v1",
        "c",
        "d",
    ]


def test_the_defaults_force_nothing_and_send_nothing(drafts: Drafts, command: Command) -> None:
    command("make", "mine")
    ((_, request),) = drafts.asked
    flags = request["flags"]
    assert isinstance(flags, dict)
    assert (request["force"], flags["text_model"], flags["text_url"]) == (False, None, None)


@pytest.mark.parametrize("wrong", [["--per-kind", "0"], ["--per-kind", "many"], []], ids=str)
def test_invalid_options_are_refused(drafts: Drafts, command: Command, wrong: list[str]) -> None:
    assert command("make", *(["mine"] if wrong else []), *wrong) == 2
    assert drafts.asked == []


def test_an_error_is_a_message_and_a_hint(
    drafts: Drafts, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts.error = InvalidRequest("mine already holds queries.jsonl", hint="add --force")
    assert command("make", "mine") == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: mine already holds queries.jsonl",
        "hint: add --force",
    ]
