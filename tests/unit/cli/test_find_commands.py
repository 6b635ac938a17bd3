"""search, list-tools, list-servers, get-types and call: text and JSON output."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.cli.commands import CommandLine
from tests.unit.gateway.mcp.gateway_double import ITEMS, down
from toolscript.cli.gateway_tables import show_answer
from toolscript.core.errors import NotReady
from toolscript.core.items import ItemKind
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.model import LocalAnswer, LocalHit, LocalStep

pytestmark = pytest.mark.requirement("TS-002")

ESCAPES = "\x1b[2J\u202e"


def test_a_search_is_a_table_of_tool_confidence_and_reason(toolscript: CommandLine) -> None:
    ended = toolscript("search", "read a file")
    head, first, *_ = ended.out.splitlines()
    assert (ended.code, head.split()) == (0, ["Tool", "Confidence", "Reason"])
    assert first.split()[:2] == ["files__read_file", "1.00"]
    assert "call: read_file(path?)" in toolscript("search", "read a file", "--explain").out


def test_flags_reach_the_query_and_the_gateway(toolscript: CommandLine) -> None:
    options = [
        "--limit",
        "1",
        "--threshold",
        "0.1",
        "--model",
        "m",
        "--data-dir",
        "d",
        "--config",
        "c",
        "--refresh",
        "--search-type",
        "semantic",
    ]
    ended = toolscript("search", "file", "--kind", "any", *options)
    assert ended.code == 0
    (query,) = toolscript.gateway.queries
    assert (query.limit, query.threshold, query.kind, query.search_type) == (1, 0.1, None, "semantic")
    ((flags, need),) = toolscript.commands.asked
    given = {"config": "c", "data_dir": "d", "search_model": "m"}
    assert flags == {**given, "gateway_port": None, "gateway_alone": None}
    assert need.refresh


def test_nothing_found_is_exit_code_1_with_what_to_change(toolscript: CommandLine) -> None:
    ended = toolscript("search", f"oven zzz{ESCAPES} file")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "No tools found matching query 'oven zzz [2J file': no good match",
        "  matched nothing: oven, zzz [2j",
        "the nearest, which are guesses:",
        "Tool               Confidence  Reason",
        "files__read_file   0.33        has file",
        "files__write_file  0.33        has file",
        "hint: Say it in other words.",
    ]


def test_a_good_match_below_the_threshold_is_not_called_bad(toolscript: CommandLine) -> None:
    ended = toolscript("search", "read file zzz", "--threshold", "0.9")
    assert ended.err.splitlines()[0] == "No tools found matching query 'read file zzz': none reaches 0.9"
    assert "the nearest:\nTool " in ended.err
    assert "files__read_file   0.67 " in ended.err
    assert "matched nothing" not in ended.err


@pytest.mark.parametrize("output", ["table", "types"])
def test_hits_without_a_good_match_are_called_a_guess(toolscript: CommandLine, output: str) -> None:
    ended = toolscript("search", "oven zzz file", "--threshold", "0.1", "--output", output)
    assert (ended.code, "files__read_file" in ended.out) == (0, True)
    assert ended.err == "no good match: the best of these is a guess; matched nothing: oven, zzz\n"


def test_a_good_match_prints_no_verdict(toolscript: CommandLine) -> None:
    assert toolscript("search", "read file zzz").err == ""


def test_the_words_are_not_blamed_when_no_server_offers_anything(toolscript: CommandLine) -> None:
    toolscript.gateway.found = ()
    assert "matched nothing" not in toolscript("search", "read file").err


def test_some_of_many_unmatched_words_are_named(toolscript: CommandLine) -> None:
    ended = toolscript("search", " ".join(f"q{number}" for number in range(12)))
    assert "  matched nothing: q0, q1, q2, q3, q4, q5, q6, q7 and 4 more\n" in ended.err


@pytest.mark.parametrize("option", [["--json"], ["--output", "json"]])
def test_json_output_is_one_line_with_or_without_hits(toolscript: CommandLine, option: list[str]) -> None:
    ended = toolscript("search", "read a file", *option)
    assert json.loads(ended.out)["results"][0]["toolId"] == "files__read_file"
    assert "parts" not in json.loads(ended.out)["results"][0]
    assert json.loads(ended.out)["good_match"] is True
    missing = toolscript("search", "zzz", *option)
    assert (missing.code, json.loads(missing.out)["results"], missing.err) == (1, [], "")
    assert (json.loads(missing.out)["good_match"], json.loads(missing.out)["unmatched_words"]) == (False, ["zzz"])


@pytest.mark.requirement("TS-003")
def test_explain_shows_the_score_components(toolscript: CommandLine) -> None:
    explained = toolscript("search", "read a file", "--explain").out
    assert "capability 0.00" in explained
    assert "\n  score: words +1.00, action -0.50\n" in explained
    as_json = json.loads(toolscript("search", "read a file", "--explain", "--json").out)
    assert sorted(as_json["results"][0]["parts"]) == [
        *("boost", "contributions", "fuzzy", "matched", "probability", "semantic", "words"),
    ]


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize(("semantic", "meaning"), [(True, "not among the nearest"), (False, "no model")])
def test_an_explanation_names_a_missing_model_only_if_it_is_missing(
    capsys: pytest.CaptureFixture[str], semantic: bool, meaning: str
) -> None:
    hit = LocalHit(ITEMS[0], 0.5, "words file")
    show_answer(LocalAnswer("file", (hit,), 1, 0.35, semantic=semantic), explain=True)
    assert f"semantic {meaning}, words" in capsys.readouterr().out


@pytest.mark.requirement("TS-003")
def test_near_misses_are_explained_too(toolscript: CommandLine) -> None:
    ended = toolscript("search", "oven zzz file", "--explain")
    assert ended.out == ""
    assert ended.err.count("\n  score: words +0.33, action -0.50\n") == 2


@pytest.mark.requirement("TS-009")
def test_types_output_is_markdown_before_a_module(toolscript: CommandLine) -> None:
    ended = toolscript("search", "read a file", "--output", "types")
    assert "export function files__read_file" in ended.out
    assert ended.out.index("#") < ended.out.index("export function")
    assert "create_issue" not in ended.out


@pytest.mark.requirement("TS-009")
def test_types_output_without_a_tool_has_no_types(toolscript: CommandLine) -> None:
    toolscript.gateway.found = [replace(item, kind=ItemKind.TOOL) for item in ITEMS[:1]]
    prompt = replace(ITEMS[0], kind=ItemKind.PROMPT)
    toolscript.gateway._tools = lambda: [prompt]  # type: ignore[method-assign]
    ended = toolscript("search", "read a file", "--kind", "prompt", "--output", "types")
    assert (ended.code, "export function" in ended.out) == (0, False)
    assert "files__read_file (prompt)" in ended.out


def test_many_queries_come_from_stdin(toolscript: CommandLine) -> None:
    ended = toolscript("search", "-", "--json", "--limit", "1", stdin='read a file\n\n{"query": "zzz"}\n')
    assert [len(json.loads(line)["results"]) for line in ended.out.splitlines()] == [1, 0]
    assert ended.code == 0
    assert toolscript("search", stdin="zzz").code == 1


def test_an_invalid_line_of_stdin_is_named_and_the_others_are_answered(toolscript: CommandLine) -> None:
    ended = toolscript("search", "-", "--json", stdin="read\n{bad json\nwrite\n")
    first, bad, last = (json.loads(line) for line in ended.out.splitlines())
    assert (ended.code, first["query"], last["query"]) == (2, "read", "write")
    assert (bad["line"], bad["error"]["code"]) == (2, "VALIDATION_ERROR")
    assert "signature" not in first["results"][0]
    ended = toolscript("search", "-", stdin="read\n{}\n")
    assert "files__read_file" in ended.out
    assert (ended.code, "line 2" in ended.err) == (2, True)


def test_a_line_with_an_unknown_key_is_refused_and_named(toolscript: CommandLine) -> None:
    ended = toolscript("search", "-", stdin='{"query": "read", "limt": 1}\n')
    assert (ended.code, toolscript.gateway.queries) == (2, [])
    assert "limt" in ended.err


@pytest.mark.parametrize(
    "arguments", [["search", ""], ["search", "x", "--limit", "0"], ["search", "x", "--threshold", "2"]]
)
def test_a_query_that_makes_no_sense_is_exit_code_2(toolscript: CommandLine, arguments: list[str]) -> None:
    ended = toolscript(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")


def test_an_error_is_json_with_the_json_option(toolscript: CommandLine) -> None:
    toolscript.gateway.broken = NotReady("not yet", hint="wait")
    ended = toolscript("search", "x", "--json")
    error = json.loads(ended.err)["error"]
    assert (ended.code, error["code"], error["details"]["hint"]) == (2, "UNAVAILABLE", "wait")


def test_control_characters_in_a_servers_error_are_removed(toolscript: CommandLine) -> None:
    toolscript.gateway.broken = NotReady(f"server said {ESCAPES}", hint=f"look {ESCAPES}")
    ended = toolscript("search", "x")
    assert ended.err.splitlines() == ["error: server said  [2J ", "hint: look  [2J "]


def test_tools_are_listed_with_their_kind(toolscript: CommandLine) -> None:
    toolscript.gateway.found = [*ITEMS, replace(ITEMS[0], name="evil", description=f"a{ESCAPES}b")]
    ended = toolscript("list-tools")
    assert "files__summary (prompt)" in ended.out
    assert "\x1b" not in ended.out
    tools = json.loads(toolscript("list-tools", "database", "--json").out)["tools"]
    assert [tool["toolId"] for tool in tools] == ["database__query_rows"]
    assert tools[0]["inputSchema"]
    nothing = toolscript("list-tools", "nobody")
    assert (nothing.code, nothing.out) == (1, "")


def test_with_no_servers_the_list_is_empty_and_exit_code_1(toolscript: CommandLine) -> None:
    ended = toolscript("list-servers")
    assert (ended.code, "config import" in ended.err) == (1, True)
    assert json.loads(toolscript("list-servers", "--json").out) == {"servers": []}
    assert not any(need.model for _, need in toolscript.commands.asked)


@pytest.mark.requirement("TS-009")
def test_types_of_some_or_all_are_printed(toolscript: CommandLine) -> None:
    some = toolscript("get-types", "files__read_file,github")
    assert "files__read_file" in some.out
    assert "github__create_issue" in some.out
    assert "database" not in some.out
    assert "database" in toolscript("get-types").out
    assert "export" not in toolscript("get-types", "--compact").out


@pytest.mark.requirement("TS-010")
def test_a_call_prints_the_tools_result(toolscript: CommandLine, tmp_path: Path) -> None:
    ended = toolscript("call", "files__read_file", '{"path": "a"}')
    assert (ended.code, ended.out) == (0, "called files__read_file\n")
    (tmp_path / "given.json").write_text('{"path": "b"}')
    toolscript("call", "files__read_file", f"@{tmp_path / 'given.json'}")
    toolscript("call", "files__read_file", "-", stdin='{"path": "c"}')
    toolscript("call", "files__read_file")
    assert [arguments for _, arguments in toolscript.gateway.calls] == [
        {"path": "a"},
        {"path": "b"},
        {"path": "c"},
        {},
    ]
    assert {need.only_server for _, need in toolscript.commands.asked} == {"files"}


@pytest.mark.requirement("TS-010")
def test_a_tool_that_reports_an_error_is_exit_code_1(toolscript: CommandLine) -> None:
    toolscript.gateway.replies["files__read_file"] = CallResult((), {"why": "no"}, is_error=True)
    ended = toolscript("call", "files__read_file")
    assert (ended.code, json.loads(ended.out)) == (1, {"why": "no"})
    as_json = toolscript("call", "files__read_file", "--json")
    assert (as_json.code, json.loads(as_json.out)["isError"]) == (1, True)


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize("arguments", ["[]", "{", "3", "@nowhere.json", ""])
def test_arguments_other_than_an_object_are_exit_code_2(toolscript: CommandLine, arguments: str) -> None:
    ended = toolscript("call", "files__read_file", arguments)
    assert (ended.code, ended.err.startswith("error: the arguments ")) == (2, True)
    assert toolscript.gateway.calls == []


@pytest.mark.requirement("TS-010")
def test_a_server_that_is_down_is_exit_code_2(toolscript: CommandLine) -> None:
    toolscript.gateway.replies["files__read_file"] = down("files")
    assert toolscript("call", "files__read_file").code == 2
    assert toolscript("call", "not-a-tool").code == 2


@pytest.mark.parametrize("port", ["-1", "65536", "99999999999", "x"])
def test_an_invalid_port_is_refused(toolscript: CommandLine, port: str) -> None:
    assert toolscript("gateway", "start", "--port", port).code == 2
    assert toolscript.commands.started == []


def test_a_valid_port_is_accepted(toolscript: CommandLine) -> None:
    for port in (0, 65535):
        assert toolscript("gateway", "start", "--port", str(port)).code == 0
    assert [flags["gateway_port"] for flags in toolscript.commands.started] == [0, 65535]


def test_a_request_for_several_things_is_a_table_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = (LocalHit(item, 0.9, "fits") for item in ITEMS[:2])
    steps = (
        LocalStep(f"read a {ESCAPES}file", (read, write), good_match=True),
        LocalStep("bake some bread", (), good_match=False),
    )
    answer = LocalAnswer("read a file and bake some bread", (read,), 1, 0.3, semantic=True, steps=steps)
    show_answer(answer, explain=False)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["Step", "Tool", "Confidence", "Reason"]
    assert rows[0].startswith("read a [2J file ")
    read_row, write_row, nothing = rows
    assert read_row.split()[-3:] == ["files__read_file", "0.90", "fits"]
    assert write_row.split()[:3] == ["files__write_file", "0.90", "fits"]
    assert nothing.split()[-3:] == ["-", "nothing", "fits"]
