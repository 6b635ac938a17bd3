"""`toolscript tools` as a person uses it, against a service with real engines and a real model."""

import json
import re
import socket
import urllib.request
from typing import Any

import pytest

from tests.conftest import Installation
from tests.e2e.commands import serving
from tests.unit.tools.catalog_http.conftest import CommandLine

READ = "read the contents of a file"


def fetch_json(url: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def without_times(answer: Any) -> Any:
    """Return the part of an answer that is the same for the same query."""
    metadata = {name: value for name, value in answer["metadata"].items() if not name.endswith("_ms")}
    return {**answer, "metadata": metadata, "query_id": ""}


def is_harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.requirement("BR-001")
def test_tools_are_shown_with_score_confidence_skills_and_description(tools: CommandLine) -> None:
    out, err = tools("search", READ)
    assert re.search(r"^Tool +Score +Confidence +Skills +Description$", out, re.MULTILINE)
    assert re.search(
        r"^disk__read_file +0\.\d\d +0\.\d\d +files +Read the contents of a file from a disk$", out, re.MULTILINE
    )
    assert "calendar__create_event" not in out
    assert re.search(r"^routed by 1 skill: files \((vector 0\.\d\d|words)\)", err, re.MULTILINE)
    assert "about 1 item is in no skill, and left out" in err


@pytest.mark.requirement("BR-008", "BR-010")
@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("direct", "all items were searched\n"),
        ("hybrid", "all items were searched, and also those of 1 skill"),
    ],
)
def test_other_strategies_find_items_in_no_skill_and_report_what_they_searched(
    tools: CommandLine, strategy: str, expected: str
) -> None:
    out, err = tools("search", READ, "--strategy", strategy)
    assert "stray__copy_file" in out
    assert expected in err


def test_json_output_is_the_response_of_the_service(tools: CommandLine, service_url: str) -> None:
    options = {
        "--strategy": "hybrid",
        "--preset": "recall",
        "--limit": "2",
        "--kind": "tool",
        "--threshold": "0.05",
        "--skill-limit": "1",
        "--skill-threshold": "0.1",
        "--search-type": "hybrid",
        "--why-not": "stray__copy_file",
    }
    body = {
        "query": READ,
        "strategy": "hybrid",
        "preset": "recall",
        "limit": 2,
        "kind": "tool",
        "threshold": 0.05,
        "skill_limit": 1,
        "skill_threshold": 0.1,
        "search_type": "hybrid",
        "why_not": "stray__copy_file",
        "include_schemas": True,
        "explain": True,
    }
    arguments = [word for pair in options.items() for word in pair]
    out = tools.json("search", READ, *arguments, "--schemas", "--explain")
    assert without_times(out) == without_times(fetch_json(service_url, "/api/v1/tools/search", body))
    assert out["results"][0]["input_schema"] == {"type": "object", "properties": {"path": {"type": "string"}}}
    assert out["results"][0]["explanation"]["place"] == 1


def test_options_that_are_not_set_are_left_to_the_service(tools: CommandLine, service_url: str) -> None:
    plain = fetch_json(service_url, "/api/v1/tools/search", {"query": READ, "include_schemas": False})
    assert without_times(tools.json("search", READ)) == without_times(plain)


def test_skills_are_printed_for_a_query(tools: CommandLine, service_url: str) -> None:
    out, _ = tools("skills", READ)
    assert re.search(r"^files +0\.\d\d +(vector|words) +3 +Reads and writes files on a disk$", out, re.MULTILINE)
    answer = fetch_json(service_url, "/api/v1/skills/search", {"query": READ, "limit": 1, "threshold": 0.2})
    printed = tools.json("skills", READ, "--limit", "1", "--threshold", "0.2")
    assert without_times(printed) == without_times(answer)


def test_a_skill_search_without_results_exits_like_a_tool_search_without_results(tools: CommandLine) -> None:
    out, err = tools("skills", "zzqx", "--threshold", "1", code=1)
    assert out == ""
    assert "no skill matches" in err
    _, err = tools("search", "zzqx", "--skill-threshold", "1", "--threshold", "0")
    assert "no skill matched: all items were searched" in err


def test_an_explanation_has_the_contributions_to_the_score_the_skills_and_the_timings(
    tools: CommandLine,
) -> None:
    out, err = tools("search", READ, "--explain", "--limit", "1")
    block = out.split("\n\n")[1]
    assert re.match(r"disk__read_file, item \d+\n  place 1, similarity 0\.\d{3}, words \d+\.\d\d\n", block)
    assert re.search(r"^  score: \w+ [+-]\d\.\d\d, ", block, re.MULTILINE)
    assert re.search(r"^  skills: files \((vector 0\.\d\d|words)\)$", block, re.MULTILINE)
    assert re.search(r"^took \d+ ms", err, re.MULTILINE)


@pytest.mark.requirement("BR-004")
def test_schemas_are_printed_on_request(tools: CommandLine) -> None:
    out, _ = tools("search", READ, "--schemas")
    assert '  input schema: {\n    "type": "object",' in out
    assert "disk__write_file\n  no schema" in out
    assert "schema" not in tools("search", READ)[0]


@pytest.mark.requirement("BR-005")
def test_the_kind_of_a_prompt_or_resource_is_printed(tools: CommandLine) -> None:
    out, _ = tools("search", "summarise a file", "--kind", "prompt")
    assert "disk__summary (prompt)" in out
    assert "read_file" not in out


def test_a_single_retriever_has_no_confidence_to_show(tools: CommandLine) -> None:
    out, _ = tools("search", READ, "--search-type", "semantic")
    assert re.search(r"^disk__read_file +0\.\d\d +files +Read", out, re.MULTILINE)


def test_without_a_hit_the_near_misses_and_the_unmatched_words_are_printed(tools: CommandLine) -> None:
    out, err = tools("search", "file xylophone marsupials", "--threshold", "1", code=1)
    assert out == ""
    assert re.search(r"^  a guess: disk__\w+ .*\(score 0\.\d\d, confidence 0\.\d\d\): ", err, re.MULTILINE)
    assert "matched nothing: xylophone, marsupials" in err
    assert "no good match" in err
    assert "hint: try other words" in err


def test_a_lower_threshold_is_suggested_for_what_fits_below_it(tools: CommandLine) -> None:
    _, err = tools("search", READ, "--threshold", "1", code=1)
    assert "none reaches the threshold" in err
    assert "hint: `--preset recall` or a lower `--threshold` shows them" in err


def test_a_guess_is_labelled_as_a_guess(tools: CommandLine) -> None:
    _, err = tools("search", "xylophone lessons for marsupials", "--threshold", "0")
    assert "no good match: the best of these is a guess; matched nothing: xylophone, lessons, marsupials" in err


@pytest.mark.parametrize(
    ("about", "options", "reason"),
    [
        ("nobody__nothing", (), "unknown"),
        ("disk__read_file", ("--kind", "prompt"), "other kind"),
        ("stray__copy_file", (), "no skill"),
        ("calendar__create_event", (), "skills not matched"),
        ("disk__write_file", ("--threshold", "0.99"), "below threshold"),
        ("disk__write_file", ("--threshold", "0", "--limit", "1"), "beyond limit"),
        ("calendar__create_event", ("--strategy", "direct", "--search-type", "keyword"), "not a candidate"),
        ("disk__read_file", (), "found"),
    ],
)
def test_why_not_explains_an_item_that_was_not_returned(
    tools: CommandLine, about: str, options: tuple[str, ...], reason: str
) -> None:
    code = 1 if reason == "below threshold" else 0
    out, _ = tools("search", READ, "--why-not", about, *options, code=code)
    block = out.split("\n\n")[-1]
    assert block.startswith(f"{about}: {reason}\n  ")
    assert ("skills: " in block) is (reason != "unknown")
    absence = tools.json("search", READ, "--why-not", about, *options, code=code)["metadata"]["why_not"]
    assert absence["reason"].replace("_", " ") == reason.replace("found", "returned")


def test_hints_name_the_options_of_the_command(tools: CommandLine) -> None:
    below, _ = tools("search", READ, "--threshold", "0.99", "--why-not", "disk__write_file", code=1)
    assert "`--threshold`" in below
    assert "tool_threshold" not in below
    beyond, _ = tools("search", READ, "--limit", "1", "--threshold", "0", "--why-not", "disk__write_file")
    assert "`--limit`" in beyond
    elsewhere, _ = tools("search", READ, "--why-not", "calendar__create_event")
    assert "`--strategy hybrid`" in elsewhere


def test_text_of_a_service_cannot_control_the_terminal(tools: CommandLine) -> None:
    queries = ("wipe a planet", "wipe\x1b[2J\u202e a planet")
    for query in queries:
        for options in ((), ("--explain", "--schemas"), ("--why-not", "evil\x1b[2J"), ("--json",)):
            out, err = tools("search", query, *options)
            assert is_harmless(out)
            assert is_harmless(err)
    out, _ = tools("search", "wipe a planet", "--limit", "1")
    row = out.splitlines()[1]
    assert row.startswith("evil__wipe [2J_planet")
    assert "[bold]not bold[/bold] second line" in row
    _, err = tools("search", "wipe\x1b[2J a planet", "--threshold", "1", code=1)
    assert is_harmless(err)
    assert "nearest: evil__wipe [2J_planet" in err


def test_a_query_with_undecodable_bytes_is_still_sent(tools: CommandLine) -> None:
    answer = tools.json("search", "read \udcff file", "--why-not", "\udcff")
    assert answer["metadata"]["why_not"]["about"] == "\ufffd"
    assert tools.json("skills", "read \udcff file")


def test_a_refusal_of_the_service_is_printed_as_it_says_it(tools: CommandLine) -> None:
    _, err = tools("search", "  ", code=2)
    assert "error: the query is blank\nhint: " in err
    _, err = tools("skills", "a" * 1001, code=2)
    assert "error: " in err
    assert "1000" in err.replace(",", "")
    _, err = tools("search", "a" * 1001, "--json", code=2)
    assert json.loads(err)["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    "options",
    [
        ("--limit", "0"),
        ("--limit", "101"),
        ("--threshold", "1.1"),
        ("--skill-limit", "33"),
        ("--skill-threshold", "-0.1"),
        ("--strategy", "magic"),
        ("--preset", "magic"),
        ("--kind", "magic"),
        ("--timeout", "0"),
    ],
)
def test_an_invalid_option_is_refused_before_any_request_is_sent(options: tuple[str, ...]) -> None:
    _, err = CommandLine("http://127.0.0.1:1")("search", "read", *options, code=2)
    assert options[0] in err
    assert "does not answer" not in err


@pytest.mark.parametrize("command", ["search", "skills"])
def test_a_missing_service_is_reported_with_the_command_that_starts_one(command: str) -> None:
    _, err = CommandLine("http://me:hunter2@127.0.0.1:1")(command, "read", code=2)
    assert "the service at 127.0.0.1:1 does not answer" in err
    assert "`toolscript serve` starts one" in err
    assert "hunter2" not in err
    _, err = CommandLine("http://127.0.0.1:1")(command, "read", "--json", code=2)
    assert json.loads(err)["error"]["code"] == "UNAVAILABLE"


def test_a_service_that_never_answers_is_waited_for_until_the_timeout_only() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        _, err = CommandLine("")("search", "read", "--url", url, "--timeout", "0.1", code=2)
    assert "timed out" in err
    assert "--timeout" in err


def test_the_url_comes_from_the_option_the_variable_or_the_default_of_serve(
    tools: CommandLine, service_url: str
) -> None:
    nowhere = CommandLine("http://127.0.0.1:1")
    assert "disk__read_file" in nowhere("search", READ, "--url", f"{service_url}/")[0]
    port = service_url.rpartition(":")[2]
    assert "disk__read_file" in CommandLine("")("search", READ, TOOLSCRIPT_PORT=port)[0]


@pytest.mark.requirement("BR-004")
def test_a_failed_part_is_named(skilled: Installation) -> None:
    nowhere = {**skilled.environment, "TOOLSCRIPT_POSTGRES_URL": "postgresql://x@127.0.0.1:1/x"}
    with serving(nowhere) as url:
        out, err = CommandLine(url)("search", READ, "--schemas")
    assert "disk__read_file" in out
    assert "degraded: the catalog did not answer: schemas are missing" in err
