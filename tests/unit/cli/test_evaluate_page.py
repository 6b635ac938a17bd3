"""eval page on the command line: reports in, a page and its plot out."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.unit.cli.commands import CommandLine
from tests.unit.eval.quality_reports import HOSTILE, report
from tests.unit.eval.test_verdicts import verdict
from toolscript_eval.dataset import EvalReport
from toolscript_eval.report import report_to_json


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder of the command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path


def written(path: Path, report_: EvalReport) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report_to_json(report_)), "utf-8")
    return str(path)


def test_reports_of_sets_and_engines_become_a_page_and_a_plot(toolscript: CommandLine, folder: Path) -> None:
    names = [
        written(Path("etom.json"), report("etom")),
        written(Path("azure.json"), report("azure")),
        written(Path("etom-service.json"), report("etom", "service")),
    ]
    ended = toolscript("eval", "page", *names)
    assert (ended.code, ended.err) == (0, "")
    page, plot = Path("docs") / "quality.md", Path("docs") / "quality.svg"
    assert ended.out == f"3 reports on 2 sets: {page} and {plot}\n"
    text = (folder / page).read_text("utf-8")
    assert f"`toolscript-eval page {' '.join(names)} --out docs/quality.md`" in text
    assert "](quality.svg)" in text
    assert text.index("| etom |") < text.index("| azure |")
    assert "etom: gateway 0.700, service 0.700" in "".join(ET.parse(folder / plot).getroot().itertext())
    assert sorted(file.name for file in (folder / "docs").iterdir()) == ["quality.md", "quality.svg"]


def test_a_report_with_unanswerable_queries_makes_a_second_plot(toolscript: CommandLine, folder: Path) -> None:
    name = written(Path("desk.json"), replace(report("desk"), verdicts=(verdict("near_miss"),)))
    ended = toolscript("eval", "page", name)
    files = [Path("docs") / file for file in ("quality.md", "quality.svg", "quality-verdict.svg")]
    assert ended.out == f"1 report on 1 set: {files[0]}, {files[1]} and {files[2]}\n"
    assert "](quality-verdict.svg)" in files[0].read_text("utf-8")
    assert "desk, near_miss (40)" in "".join(ET.parse(files[2]).getroot().itertext())
    taken = toolscript("eval", "page", written(Path("q-verdict.svg"), report()), "--out", "q.md")
    assert taken.code == 2
    assert "would overwrite a report" in taken.err


def test_as_json_the_result_is_one_line(toolscript: CommandLine, folder: Path) -> None:
    ended = toolscript("eval", "page", written(Path("a.json"), report()), "--out", "mine.md", "--json")
    counts = {"sets": 1, "reports": 1}
    assert json.loads(ended.out) == {"page": "mine.md", "plot": "mine.svg", "verdict_plot": None, **counts}
    assert (folder / "mine.svg").is_file()


def test_paths_of_this_machine_are_not_printed(
    toolscript: CommandLine, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    outside = written(elsewhere / "a report.json", report("a"))
    inside = written(folder / "reports" / "b.json", report("b"))
    assert toolscript("eval", "page", outside, inside, "--out", str(folder / "docs" / "q.md")).code == 0
    text = (folder / "docs" / "q.md").read_text("utf-8")
    assert "`toolscript-eval page 'a report.json' reports/b.json --out docs/q.md`" in text
    assert str(folder.parent) not in text


def test_a_hostile_report_still_makes_a_page(toolscript: CommandLine, folder: Path) -> None:
    assert toolscript("eval", "page", written(Path("a `b`.json"), report(HOSTILE))).code == 0
    assert ET.parse(folder / "docs" / "quality.svg").getroot().tag.endswith("svg")
    assert "<script" not in (folder / "docs" / "quality.md").read_text("utf-8")


def test_a_new_page_replaces_the_old_one(toolscript: CommandLine, folder: Path) -> None:
    for name in ("first", "second"):
        toolscript("eval", "page", written(Path("a.json"), report(name)))
    text = (folder / "docs" / "quality.md").read_text("utf-8")
    assert "second" in text
    assert "### first" not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read a.json"),
        ("not json", "a.json is not JSON"),
        (b"\xff\xfe", "a.json is not JSON"),
        ("[1]", "a.json holds no report"),
        ('{"format": 1, "systems": []}', "a.json: this is no report"),
        ("{}", "a.json: this is no report"),
    ],
)
def test_a_file_that_is_not_a_report_is_named_and_nothing_is_written(
    toolscript: CommandLine, folder: Path, content: str | bytes | None, message: str
) -> None:
    if content is not None:
        (folder / "a.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = toolscript("eval", "page", written(Path("good.json"), report()), "a.json")
    assert ended.code == 2
    assert f"error: {message}" in ended.err
    assert "hint: give files that `toolscript-eval --out FILE` wrote" in ended.err
    assert list((folder / "docs").iterdir()) == []


@pytest.mark.parametrize("out", ["docs", "quality.svg", ".", "nowhere/quality.md", "a.json", "a.md"])
def test_an_unusable_output_path_is_refused(toolscript: CommandLine, folder: Path, out: str) -> None:
    """Includes a page or a plot that would overwrite a report."""
    reports = [written(Path("a.json"), report("a")), written(Path("a.svg"), report("b"))]
    ended = toolscript("eval", "page", *reports, "--out", out)
    assert (ended.code, ended.out) == (2, "")
    assert "hint: " in ended.err
    assert (folder / "a.svg").read_text("utf-8").startswith("{")


def test_the_same_report_twice_is_refused(toolscript: CommandLine, folder: Path) -> None:
    name = written(Path("a.json"), report("etom"))
    ended = toolscript("eval", "page", name, name)
    assert ended.code == 2
    assert "error: two reports are about the gateway on etom" in ended.err


def test_without_a_report_there_is_nothing_to_show(toolscript: CommandLine, folder: Path) -> None:
    assert toolscript("eval", "page").code == 2
