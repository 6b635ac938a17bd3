"""Output of the command line: tables, JSON, limits and thresholds, messages and exit codes."""

import json
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Gateway, Machine, copy_of
from tests.e2e.gateway.scenarios import scenario

pytestmark = pytest.mark.requirement("TS-002")

ESCAPE = "\x1b"


@pytest.fixture(scope="session")
def person(served: tuple[Machine, Gateway]) -> Machine:
    """Return a machine with a running gateway, so that commands are quick."""
    return served[0].here()


def confidences(machine: Machine, *arguments: str, code: int = 0) -> list[float]:
    return [result["confidence"] for result in machine.json("search", *arguments, code=code)["results"]]


@scenario("Basic search invocation with default output")
@pytest.mark.states("S1-059", "S1-061", "S1-062", "S1-063")
def test_a_search_shows_a_table_of_at_most_three_tools(person: Machine) -> None:
    head, *rows = person.run("search", "read file contents").stdout.splitlines()
    assert head.split() == ["Tool", "Confidence", "Reason"]
    assert 1 <= len(rows) <= 3
    places = [head.index(title) for title in ("Confidence", "Reason")]
    assert rows[0].startswith("desktop-commander__read_file ")
    assert 0.35 <= float(rows[0][places[0] : places[1]]) <= 1
    assert "file" in rows[0][places[1] :]
    output = [float(row[places[0] : places[1]]) for row in rows]
    assert output == sorted(output, reverse=True)


@scenario("Limit results via CLI flag")
@pytest.mark.states("S1-071", "S1-072")
def test_a_limit_keeps_the_best(person: Machine) -> None:
    every = confidences(person, "database query", "--limit", "100", "--threshold", "0")
    assert len(every) > 5
    assert confidences(person, "database query", "--limit", "5", "--threshold", "0") == every[:5]


@scenario("Limit results via environment variable")
@pytest.mark.states("S1-073", "S1-123")
def test_a_limit_in_the_environment_holds_and_a_flag_beats_it(person: Machine) -> None:
    asks_for_ten = person.also(TOOLSCRIPT_SEARCH_LIMIT="10")
    assert len(confidences(asks_for_ten, "database query", "--threshold", "0")) == 10
    assert len(confidences(asks_for_ten, "database query", "--threshold", "0", "--limit", "2")) == 2


@scenario("Confidence threshold filtering via CLI")
@pytest.mark.states("S1-074", "S1-075")
def test_a_threshold_leaves_out_what_is_below_it_and_may_leave_nothing(person: Machine) -> None:
    every = confidences(person, "read file", "--limit", "100", "--threshold", "0")
    above = confidences(person, "read file", "--limit", "100", "--threshold", "0.5")
    assert above == [item for item in every if item >= 0.5]
    assert len(above) < len(every)
    assert confidences(person, "some obscure question", "--threshold", "0.9", code=1) == []


@scenario("Confidence threshold via environment variable")
@pytest.mark.states("S1-076", "S1-123")
def test_a_threshold_in_the_environment_holds_and_a_flag_beats_it(person: Machine) -> None:
    asks_for_more = person.also(TOOLSCRIPT_SEARCH_THRESHOLD="0.4")
    assert asks_for_more.json("search", "read file")["threshold"] == 0.4
    assert asks_for_more.json("search", "read file", "--threshold", "0.2")["threshold"] == 0.2


@scenario("Default threshold and limit values")
@pytest.mark.states("S1-077", "S1-078")
def test_the_default_threshold_is_0_35_and_the_default_limit_3(person: Machine) -> None:
    answer = person.json("search", "files")
    every = confidences(person, "files", "--limit", "100", "--threshold", "0")
    assert answer["threshold"] == 0.35
    assert [item["confidence"] for item in answer["results"]] == [item for item in every if item >= 0.35][:3]
    assert len(confidences(person, "files", "--threshold", "0")) == 3


@scenario("No results found")
@pytest.mark.states("S1-105", "S1-106", "S1-107")
def test_an_empty_result_has_a_hint_and_exit_code_1(person: Machine) -> None:
    done = person.run("search", "xylophone lessons for marsupials", code=1)
    assert done.stdout == ""
    assert "No tools found matching query 'xylophone lessons for marsupials'" in done.stderr
    assert "hint: try other words\n" in done.stderr
    for search in (
        ("xylophone lessons for marsupials", "--search-type", "semantic"),
        ("read file contents", "--threshold", "1"),
    ):
        assert "try other words, or a lower --threshold" in person.run("search", *search, code=1).stderr


def test_queries_come_from_stdin_as_lines_of_text_and_of_json(person: Machine) -> None:
    lines = 'read_file\n\n{"query": "list_tables", "limit": 1}\n{"query": "files", "limit": 2, "threshold": 0}\n'
    done = person.run("search", "--json", standard_input=lines)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [item["query"] for item in answers] == ["read_file", "list_tables", "files"]
    assert answers[0]["results"][0]["toolId"] == "desktop-commander__read_file"
    assert [item["toolId"] for item in answers[1]["results"]] == ["database__list_tables"]
    assert len(answers[2]["results"]) == 2


def test_a_line_that_is_no_query_is_refused_with_its_number(person: Machine) -> None:
    done = person.run("search", "-", code=2, standard_input='read a file\n{"q": "wrong key"}\n')
    assert "line 2 is not a query" in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("search", " "),
        ("search", "x", "--limit", "0"),
        ("search", "x", "--threshold", "7"),
        ("search", "x" * 1001),
    ],
)
def test_an_invalid_query_is_refused_with_exit_code_2(person: Machine, wrong: tuple[str, ...]) -> None:
    assert person.run(*wrong, code=2).stderr.startswith("error: ")


@pytest.mark.parametrize("name", ["LIMIT", "THRESHOLD", "ALPHA", "DEVICE", "NO_CACHE"])
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(person: Machine, name: str) -> None:
    done = person.also(**{f"TOOLSCRIPT_SEARCH_{name}": "nonsense"}).run("search", "x", code=2)
    assert f"TOOLSCRIPT_SEARCH_{name} cannot be used" in done.stderr


def test_an_error_is_json_with_the_json_option(person: Machine) -> None:
    done = person.run("search", "x", "--limit", "0", "--json", code=2)
    assert json.loads(done.stderr)["error"]["code"] == "VALIDATION_ERROR"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("search", "read file"), "results"),
        (("list-tools", "database"), "tools"),
        (("get-types", "database"), "module"),
        (("call", "plain__echo", '{"x": 1}'), "content"),
        (("gateway", "status"), "running"),
    ],
)
def test_every_command_has_json_output(person: Machine, arguments: tuple[str, ...], key: str) -> None:
    assert person.json(*arguments)[key]


@pytest.mark.states("S1-060")
def test_json_is_an_output_like_the_others(person: Machine) -> None:
    assert json.loads(person.run("search", "read file", "--output", "json").stdout) == person.json(
        "search", "read file"
    )


def test_a_pipe_gets_no_colours_and_no_bars(furnished: Machine) -> None:
    done = furnished.run("search", "read file", "--explain")
    assert ESCAPE not in done.stdout + done.stderr
    assert "semantic 0." in done.stdout


def test_a_terminal_gets_colours_unless_they_are_unwanted(person: Machine) -> None:
    assert ESCAPE in person.on_a_terminal("search", "read file")
    plain = person.also(NO_COLOR="1").on_a_terminal("search", "read file")
    assert ESCAPE not in plain
    assert "desktop-commander__read_file" in plain


@pytest.mark.requirement("TS-010")
def test_a_call_takes_its_arguments_from_the_line_from_stdin_or_from_a_file(person: Machine) -> None:
    file = person.folder / "arguments.json"
    file.write_text('{"a": 1, "b": 2}', "utf-8")
    assert person.run("call", "plain__add", '{"a": 1, "b": 2}').stdout == "the sum\n"
    assert person.run("call", "plain__add", "-", standard_input='{"a": 1, "b": 2}').stdout == "the sum\n"
    assert person.run("call", "plain__add", f"@{file}").stdout == "the sum\n"
    assert "JSON object" in person.run("call", "plain__add", "[1]", code=2).stderr


@pytest.mark.requirement("TS-010")
def test_a_tool_that_fails_and_a_tool_that_is_not_there_end_differently(person: Machine) -> None:
    failed = person.run("call", "plain__fail", code=1)
    assert (failed.stdout, failed.stderr) == ("it went wrong\n", "the tool reports an error\n")
    missing = person.run("call", "plain__ech", code=2)
    assert "there is no tool plain__ech" in missing.stderr
    assert "plain__echo" in missing.stderr


def test_a_command_works_alone_where_no_gateway_runs_and_says_when_its_tools_are_old(
    furnished: Machine, tmp_path: Path
) -> None:
    machine = copy_of(furnished, tmp_path / "machine")
    done = machine.run("search", "read file")
    assert "desktop-commander__read_file" in done.stdout
    assert "tools as they were" not in done.stderr
    [file] = (machine.data / "cache" / "tools").glob("*.json")
    kept = json.loads(file.read_text("utf-8"))
    for server in kept["servers"].values():
        server["at"] -= 3 * 3600
    file.write_text(json.dumps(kept), "utf-8")
    assert "tools as they were 3 h ago; --refresh queries" in machine.run("search", "read file").stderr
