"""Faulty servers beside a working one: the working server and the gateway keep responding."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.catalogs import catalog_servers, tool, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, new_machine, until

pytestmark = pytest.mark.requirement("TS-011")

GOOD = tool("good", "read_file", "Read the contents of a file from disk", path="where the file is")
FAULTS = {
    "hangs": "hangs_at_start",
    "dies": "dies_at_start",
    "falls": "dies_mid_call",
    "long": "five_megabyte_description",
    "noisy": "invalid_json",
    "twice": "bad_entries",
    "loop": "reference_loop",
    "odd": "odd_answers",
}


def with_faults(machine: Machine, faults: dict[str, str]) -> Machine:
    catalog = write_catalog(machine.folder / "good.jsonl", [GOOD])
    faulty = {name: mcp_server("faulty", fault) for name, fault in faults.items()}
    machine.configure({**catalog_servers(catalog, ["good"]), **faulty})
    return machine


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    machine = with_faults(new_machine(tmp_path_factory.mktemp("troubled") / "machine", weights), FAULTS)
    with machine.gateway() as gateway:
        waiting = {"good", *FAULTS} - {"hangs"}
        until(lambda: {name for name in waiting if _status(gateway, name) != "starting"} == waiting, "all but one")
        yield machine, gateway


@pytest.fixture(autouse=True)
def still_answers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that the gateway still searches, calls and generates types."""
    yield
    if "troubled" in request.fixturenames:
        _, gateway = request.getfixturevalue("troubled")
        assert gateway.search("read the contents of a file")["results"][0]["toolId"] == "good__read_file"
        assert gateway.call("good__read_file", path="x").json()["structuredContent"] == {"path": "x"}
        assert 'callTool("/tools/good__read_file"' in gateway.ask("/runtime/tools.ts").text


def _status(gateway: Gateway, name: str) -> str:
    return str(gateway.server(name).get("status", "starting"))


def _error(gateway: Gateway, name: str) -> str:
    return str(gateway.server(name)["error"])


def test_a_server_that_hangs_at_startup_delays_nothing(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    assert _status(gateway, "hangs") == "starting"
    assert gateway.health()["ready"] is True


def test_a_server_that_dies_at_its_start_is_named_in_every_answer_with_the_reason(
    troubled: tuple[Machine, Gateway],
) -> None:
    machine, gateway = troubled
    assert _status(gateway, "dies") == "failed"
    assert "not searched: dies (" in gateway.search("read a file")["hint"]
    output = machine.here().run("search", "read a file").stderr
    assert "not searched: dies (" in output
    assert gateway.health()["status"] == "degraded"


def test_a_server_that_hangs_too_long_has_failed_and_says_after_how_long(machine: Machine) -> None:
    slow = mcp_server("faulty", "hangs_at_start", startupTimeout=0.5)
    catalog = write_catalog(machine.folder / "good.jsonl", [GOOD])
    machine.configure({**catalog_servers(catalog, ["good"]), "hangs": slow})
    done = machine.here().run("search", "read the contents of a file")
    assert "good__read_file" in done.stdout
    assert "not searched: hangs (it was not ready within 0.5 seconds" in done.stderr


def test_a_server_that_dies_in_a_call_is_reported_and_restarted(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    until(lambda: _status(gateway, "falls") == "ready", "the server")
    answer = gateway.call("falls__work")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "UNAVAILABLE"
    assert "falls" in answer.json()["error"]["message"]
    until(lambda: _status(gateway, "falls") == "ready", "the server again")


def test_of_a_description_of_five_megabytes_the_beginning_is_kept(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    assert _status(gateway, "long") == "ready"
    described = {
        item["toolName"]: item["description"] for item in gateway.ask("/tools?filter=long").json()["tools"]
    }
    assert described["short"] == "a few words"
    assert 1_000 < len(described["long"]) <= 100_000
    assert gateway.search("long__long")["results"][0]["toolId"] == "long__long"
    assert len(gateway.ask("/runtime/tools.ts?filter=long").content) < 200_000


def test_lines_that_are_not_json_are_skipped(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    assert _status(gateway, "noisy") == "ready"
    assert gateway.call("noisy__work", x=1).json()["content"] == [{"type": "text", "text": '{"x": 1}'}]


def test_of_two_tools_with_one_name_the_first_counts_and_the_other_is_reported(
    troubled: tuple[Machine, Gateway],
) -> None:
    machine, gateway = troubled
    listed = gateway.ask("/tools?filter=twice").json()["tools"]
    assert [item["toolName"] for item in listed].count("good") == 1
    assert next(item for item in listed if item["toolName"] == "good")["description"] != "the second of its name"
    assert "also good" in {item["toolName"] for item in listed}
    assert "left out" in _error(gateway, "twice")
    assert "left out" in machine.here().run("gateway", "status").stdout


@pytest.mark.requirement("TS-009")
def test_a_schema_that_refers_to_itself_becomes_types_all_the_same(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    module = gateway.ask("/runtime/tools.ts?filter=loop").text
    assert "export interface LoopWalkParams" in module
    assert "next?:" in module
    assert gateway.search("walk")["results"][0]["toolId"] == "loop__walk"


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize("name", ["text", "blocks"])
def test_an_invalid_response_is_a_server_error(troubled: tuple[Machine, Gateway], name: str) -> None:
    _, gateway = troubled
    answer = gateway.call(f"odd__{name}")
    assert answer.status_code in (502, 503)
    assert "odd" in answer.json()["error"]["message"]


@pytest.mark.requirement("TS-010")
def test_a_number_that_json_does_not_have_does_not_spoil_the_answer(troubled: tuple[Machine, Gateway]) -> None:
    _, gateway = troubled
    answer = gateway.call("odd__nan")
    assert answer.status_code == 200
    assert "NaN" not in answer.text
    assert answer.json()["isError"] is False


@pytest.mark.nightly
def test_ten_thousand_tools_are_searched_while_they_are_still_being_embedded(machine: Machine) -> None:
    with with_faults(machine, {"many": "ten_thousand_tools"}).gateway() as gateway:
        until(lambda: gateway.server("many").get("tools") == 10_000 and gateway.health()["items"] == 10_001, "all")
        assert gateway.search("tool_7777")["results"][0]["toolId"] == "many__tool_7777"
        assert gateway.search("read the contents of a file")["results"][0]["toolId"] == "good__read_file"
        assert gateway.ask("/tools?offset=10000").json()["total"] == 10_001
        assert gateway.ask("/runtime/tools.ts?filter=many__tool_1").status_code == 200
        assert len([*gateway.ask("/tools?limit=1000").json()["tools"]]) == 1_000


def test_a_call_right_after_a_crash_waits_for_the_restart(tmp_path: Path, weights: Path) -> None:
    machine = new_machine(tmp_path / "machine", weights)
    diary = tmp_path / "diary"
    machine.configure({"counting": mcp_server("counting", str(diary), "count")})
    with machine.gateway() as gateway:
        first = _pid(gateway)
        os.kill(first, signal.SIGKILL)
        until(lambda: _status(gateway, "counting") != "ready", "that the crash is noticed")
        assert _pid(gateway) != first


def _pid(gateway: Gateway) -> int:
    content = gateway.call("counting__count", id="1").json()["content"]
    return int(json.loads(content[0]["text"])["pid"])
