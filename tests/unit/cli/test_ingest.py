"""`toolscript ingest`: requests to the service, messages about files, and exit codes."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.unit.cli.commands import Ended
from toolscript.cli.app import build_cli, run
from toolscript.core.llm.model import TextUsage
from toolscript.core.values import OnProgress, Progress
from toolscript.knowledge.ingest.report import IngestReport
from toolscript.knowledge.model.ingest import IngestOptions, IngestOutcome, IngestResult
from toolscript.server import ingest as server_ingest
from toolscript.server import library

pytestmark = pytest.mark.requirement("KN-005")

ADDED = IngestResult("/shelf/bees.md", IngestOutcome.ADDED, 3, 1)
KEPT = IngestResult("/shelf/kept.md", IngestOutcome.UNCHANGED)
BAD = IngestResult("/shelf/bad\x1b[2J.pdf", IngestOutcome.SKIPPED, problem="it is damaged\nor not")


@dataclass
class Service:
    """Double of a library: returns these results, and records its requests."""

    results: Sequence[IngestResult] = ()
    usage: TextUsage | None = None
    left: int = 0
    was_stopped: bool = False
    orders: list[IngestOptions] = field(default_factory=list)
    dropped: list[bool] = field(default_factory=list)

    def ingest(
        self, order: IngestOptions, *, on_progress: OnProgress, on_result: Callable[[IngestResult], None]
    ) -> IngestReport:
        self.orders.append(order)
        report = IngestReport(text_usage=self.usage, was_stopped=self.was_stopped)
        for result in self.results:
            report.add(result)
            on_result(result)
            on_progress(Progress("files", report.done, len(self.results)))
        return report

    def watch_ingest(
        self,
        order: IngestOptions,
        *,
        on_progress: OnProgress,
        on_result: Callable[[IngestResult], None],
        on_report: Callable[[IngestReport], None],
    ) -> None:
        for _ in range(2):
            on_report(self.ingest(order, on_progress=on_progress, on_result=on_result))

    def reindex_library(self, *, drop_previous: bool, on_progress: OnProgress) -> dict[str, object]:
        self.dropped.append(drop_previous)
        return {"live": "abc", "left": self.left}


@pytest.fixture
def toolscript(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def command(service: Service, *arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["toolscript", "ingest", *arguments])
        monkeypatch.setattr(server_ingest, "ingest", service.ingest)
        monkeypatch.setattr(server_ingest, "watch_ingest", service.watch_ingest)
        monkeypatch.setattr(library, "reindex_library", service.reindex_library)
        with pytest.raises(SystemExit) as ended:
            run(build_cli())
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return command


def test_every_option_reaches_the_service(toolscript: Callable[..., Ended]) -> None:
    service = Service()
    arguments = [
        "a",
        "b",
        "--type",
        "book",
        "--topic",
        "bees",
        "--topic",
        "honey",
        "--author",
        "Ann",
        "--base",
        "/x",
    ]
    assert toolscript(service, *arguments, "--prune", "--no-extract", "--token-budget", "9").code == 0
    assert service.orders == [
        IngestOptions(("a", "b"), "/x", "book", ("bees", "honey"), ("Ann",), False, 9, prune=True, dry=False)
    ]


def test_the_report_counts_outcomes_chunks_extractions_and_tokens(toolscript: Callable[..., Ended]) -> None:
    ended = toolscript(Service([ADDED, KEPT], TextUsage(2, 1, 1_000, 50)), "shelf")
    assert ended.code == 0
    assert ended.out == (
        "files: 1 added, 0 updated, 1 unchanged, 0 removed, 0 skipped\n"
        "written: 3 chunks, 1 extraction\n"
        "language model: 2 calls, 1 failed, 1,000 prompt tokens, 50 completion tokens\n"
    )


def test_a_skipped_file_is_named_with_its_reason_on_one_safe_line(toolscript: Callable[..., Ended]) -> None:
    ended = toolscript(Service([ADDED, BAD]), "shelf")
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert line.startswith("skipped /shelf/bad")
    assert "\x1b" not in line
    assert "damaged" in line


def test_the_text_names_some_of_many_skipped_files_and_json_all(toolscript: Callable[..., Ended]) -> None:
    many = [IngestResult(f"/shelf/{n}.pdf", IngestOutcome.SKIPPED, problem="it is damaged") for n in range(150)]
    messages = toolscript(Service(many), "shelf").err.splitlines()
    assert (len(messages), messages[-1]) == (21, "and 130 more; --json names them all")
    *skipped, report = map(json.loads, toolscript(Service(many), "shelf", "--json").out.splitlines())
    assert [entry["path"] for entry in skipped] == [entry.path for entry in many]
    assert skipped[0] == {"path": "/shelf/0.pdf", "outcome": "skipped", "problem": "it is damaged"}
    assert (report["skipped"], report["added"]) == (150, 0)


def test_a_dry_run_prints_the_outcome_of_each_changed_file(toolscript: Callable[..., Ended]) -> None:
    service = Service([ADDED, KEPT])
    assert toolscript(service, "shelf", "--dry-run").out.splitlines() == [
        "/shelf/bees.md: added, 3 chunks",
        "would be: 1 added, 0 updated, 1 unchanged, 0 removed, 0 skipped; 3 chunks in them",
    ]
    assert service.orders[0].dry


def test_a_stopped_run_says_how_to_resume(toolscript: Callable[..., Ended]) -> None:
    ended = toolscript(Service([ADDED], was_stopped=True), "shelf")
    assert (ended.code, ended.err) == (2, "stopped: run the same command again to resume\n")


def test_watching_prints_each_change_and_nothing_for_a_quiet_round(
    toolscript: Callable[..., Ended],
) -> None:
    out = toolscript(Service([KEPT]), "shelf", "--watch").out.splitlines()
    assert len(out) == 2
    changed = toolscript(Service([ADDED]), "shelf", "--watch", "--json").out.splitlines()
    assert [json.loads(line).get("path") for line in changed] == [ADDED.path, None, ADDED.path, None]


@pytest.mark.parametrize(("left", "code"), [(0, 0), (2, 2)])
def test_reindexing_needs_no_files_and_reports_sources_held_by_other_runs(
    toolscript: Callable[..., Ended], left: int, code: int
) -> None:
    service = Service(left=left)
    assert toolscript(service, "--reindex", "--drop-previous").code == code
    assert service.dropped == [True]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "there is nothing to ingest"),
        (["shelf", "--reindex"], "PATH: not with --reindex"),
        (["--reindex", "--watch", "--dry-run"], "--watch, --dry-run: not with --reindex"),
        (["shelf", "--watch", "--dry-run"], "--watch and --dry-run"),
        (["shelf", "--drop-previous"], "--drop-previous is for --reindex"),
    ],
)
def test_options_that_exclude_each_other_are_refused_with_a_hint(
    toolscript: Callable[..., Ended], arguments: list[str], says: str
) -> None:
    ended = toolscript(Service(), *arguments)
    assert ended.code == 2
    assert says in ended.err
    assert "hint: " in ended.err
