"""The activity log as a user meets it: what commands and MCP clients did, what it saved, and how it is deleted."""

import json
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import Implementation

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, until

pytestmark = pytest.mark.requirement("GW-005")


@pytest.fixture
def plain(machine: Machine) -> Machine:
    machine.configure({"plain": mcp_server("plain")})
    return machine.also(TOOLSCRIPT_SEARCH_MODEL="none")


def summary(machine: Machine, *options: str) -> list[tuple[str, str | None, str, str | None]]:
    """Client, tool, outcome and error of each entry, the newest first."""
    entries = machine.here().json("activity", *options)["results"]
    return [(entry["client"], entry["tool"], entry["outcome"], entry["error"]) for entry in entries]


async def use_over_stdio(machine: Machine) -> None:
    program, *arguments = command("mcp")
    process = StdioServerParameters(
        command=program, args=arguments, env=machine.whole_environment(), cwd=machine.project
    )
    async with Client(stdio_client(process), client_info=Implementation(name="an editor", version="1")) as client:
        await client.call_tool("search_tools", {"query": "add two numbers"})
        await client.call_tool("describe_tool", {"tool": "plain__add"})
        await client.call_tool("call_tool", {"tool": "plain__add", "arguments": {"a": 1, "b": 2}})
        await client.call_tool("call_tool", {"tool": "plain__ad", "arguments": {}})


async def use_over_http(gateway: Gateway) -> None:
    info = Implementation(name="an agent", version="1")
    async with Client(f"{gateway.url}/mcp", client_info=info) as client:
        await client.call_tool("call_tool", {"tool": "plain__fail", "arguments": {}})


def ready(gateway: Gateway) -> Gateway:
    until(lambda: gateway.server("plain").get("status") == "ready", "the server")
    return gateway


OF_STDIO = [
    ("an editor", "ad", "refused", "NOT_FOUND"),
    ("an editor", "add", "ok", None),
    ("an editor", None, "ok", None),
]


async def test_every_surface_is_logged_once_with_its_client(plain: Machine) -> None:
    assert plain.here().json("activity", code=1) == {"results": [], "next_cursor": None}
    plain.run("call", "plain__echo", '{"text": "a secret"}')
    with plain.gateway() as gateway:
        ready(gateway)
        plain.run("search", "echo")
        await use_over_stdio(plain)
        await use_over_http(gateway)
        gateway.call("plain__echo", text="x")
    expected = [
        ("http", "echo", "ok", None),
        ("an agent", "fail", "error", "TOOL_ERROR"),
        *OF_STDIO,
        ("cli", None, "ok", None),
        ("cli", "echo", "ok", None),
    ]
    assert summary(plain) == expected
    assert summary(plain, "--client", "cli", "--tool", "plain__echo") == [("cli", "echo", "ok", None)]
    assert b"a secret" not in (plain.data / "activity.db").read_bytes()


async def test_a_client_with_a_gateway_of_its_own_is_logged_and_its_session_is_counted(plain: Machine) -> None:
    await use_over_stdio(plain)
    assert summary(plain) == OF_STDIO
    with plain.gateway():
        usage = plain.json("gateway", "status")["usage"]
        line = plain.run("gateway", "status").stdout
    assert (usage["days"], usage["searches"], usage["calls"], usage["sessions"]) == (30, 1, 1, 1)
    assert f"about {usage['saved_tokens']:,} tokens saved in 1 sessions of MCP clients" in line


def test_it_is_shown_as_a_table_page_by_page_and_cleared(plain: Machine) -> None:
    for number in range(3):
        plain.here().run("call", "plain__echo", json.dumps({"number": number}))
    shown = plain.here().run("activity", "--limit", "2")
    assert "plain__echo" in shown.stdout
    assert shown.stdout.count("\n") == 3
    cursor = shown.stderr.partition("--after ")[2].split()[0]
    assert len(plain.here().json("activity", "--limit", "2", "--after", cursor)["results"]) == 1
    refused = plain.here().run("activity", "--clear", code=2)
    assert "--yes" in refused.stderr
    assert plain.here().json("activity", "--clear", "--yes") == {"deleted": 3}
    assert "nothing is logged" in plain.here().run("activity", code=1).stderr


def test_following_shows_what_begins_and_ends(plain: Machine, tmp_path: Path) -> None:
    output = tmp_path / "followed"
    plain.run("call", "plain__echo")
    process = plain.popen("activity", "--follow", "--json", stdout=output, stderr=tmp_path / "errors")
    try:
        until(lambda: output.exists() and output.read_text("utf-8").count("\n") == 1, "the entry that was there")
        plain.run("call", "plain__slow", '{"seconds": 3}')
        until(lambda: output.read_text("utf-8").count("\n") >= 3, "the call that began and ended")
    finally:
        process.terminate()
        process.wait()
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [(line["tool"], line["outcome"]) for line in lines] == [
        ("echo", "ok"),
        ("slow", "running"),
        ("slow", "ok"),
    ]


def test_arguments_are_kept_when_asked_for_and_secrets_in_them_are_not(plain: Machine) -> None:
    arguments = json.dumps({"path": "a.txt", "api_key": "hunter2-hunter2"})
    plain.also(TOOLSCRIPT_GATEWAY_ACTIVITY="arguments").run("call", "plain__echo", arguments)
    [entry] = plain.here().json("activity")["results"]
    assert entry["arguments"] == {"path": "a.txt", "api_key": "***"}
    assert b"hunter2" not in (plain.data / "activity.db").read_bytes()


def test_it_can_be_off(plain: Machine) -> None:
    off = plain.also(TOOLSCRIPT_GATEWAY_ACTIVITY="off")
    off.run("call", "plain__echo")
    assert not (plain.data / "activity.db").exists()
    assert "off" in next(
        line for line in off.here().run("doctor", code=0).stdout.splitlines() if "ACTIVITY" in line
    )


def test_a_log_that_cannot_be_written_stops_nothing_and_is_reported(plain: Machine) -> None:
    plain.data.mkdir()
    (plain.data / "activity.db").write_text("this is no database\n" * 100)
    done = plain.run("call", "plain__echo", '{"text": "x"}')
    assert "x" in done.stdout
    assert done.stderr.count("the activity log cannot be written") == 1
    with plain.gateway() as gateway:
        ready(gateway)
        for _ in range(3):
            assert gateway.call("plain__echo", text="x").status_code == 200
        status = plain.here().run("gateway", "status")
        assert "searches and calls are not logged" in status.stderr
        assert gateway.log.read_text("utf-8").count("cannot be written") == 1
        doctor = plain.run("doctor", code=2).stdout
        assert "FIX  ACTIVITY" in doctor
        assert "toolscript activity --clear" in doctor
        plain.here().run("activity", "--clear", "--yes")
        gateway.call("plain__echo", text="y")
        until(lambda: gateway.health()["activity"] == "", "the log")
    assert ("http", "echo", "ok", None) in summary(plain)


def test_only_its_user_can_read_it(plain: Machine) -> None:
    plain.run("call", "plain__echo")
    for file in plain.data.glob("activity.db*"):
        with suppress(FileNotFoundError):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
