"""Results and failures of calls."""

import asyncio
import json
import time

import pytest

from tests.unit.core.mcp_client.builders import ROOT, faulty, plain, text, until_failed, until_ready
from toolscript.core.errors import InvalidRequest, NotFound, ServerRejected, ServerUnavailable
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.slow]


async def test_structured_content_and_content_survive(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    result = await servers.call("plain", "add", {"a": 1, "b": 2})
    assert result.structured_content == {"sum": 3}
    assert result.content == ({"type": "text", "text": "the sum"},)
    assert result.is_error is False


async def test_an_error_that_a_tool_reports_is_an_answer(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    result = await servers.call("plain", "fail", {})
    assert (result.is_error, text(result)) == (True, "it went wrong")


async def test_an_error_of_the_protocol_is_a_refusal_in_the_servers_words(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    with pytest.raises(ServerRejected, match="plain: tools/call: not with me") as refused:
        await servers.call("plain", "refuse", {})
    assert refused.value.details == {"code": -32602}


@pytest.mark.parametrize("tool", ["text", "blocks"])
async def test_a_malformed_answer_is_a_refusal(servers: McpServers, tool: str) -> None:
    servers.use([faulty("odd_answers")])
    await until_ready(servers, "odd_answers")
    with pytest.raises(ServerRejected, match="the answer"):
        await servers.call("odd_answers", tool, {})


async def test_values_that_json_lacks_become_null(servers: McpServers) -> None:
    servers.use([faulty("odd_answers")])
    await until_ready(servers, "odd_answers")
    assert (await servers.call("odd_answers", "nan", {})).structured_content is None


async def test_a_server_that_is_not_there_is_named_with_those_that_are(servers: McpServers) -> None:
    servers.use([plain("one"), plain("two")])
    with pytest.raises(NotFound, match="three") as error:
        await servers.call("three", "echo", {})
    assert error.value.hint == "the servers are: one, two"


async def test_a_call_to_a_starting_server_reports_its_state(servers: McpServers) -> None:
    servers.use([plain()])
    with pytest.raises(ServerUnavailable, match="plain is starting"):
        await servers.call("plain", "echo", {})


async def test_a_call_to_a_failed_server_reports_the_reason(servers: McpServers) -> None:
    servers.use([faulty("dies_at_start")])
    await until_failed(servers, "dies_at_start")
    with pytest.raises(ServerUnavailable, match="dies_at_start has failed: the process ended with exit code 3"):
        await servers.call("dies_at_start", "work", {})


async def test_a_tool_that_the_config_leaves_out_cannot_be_called(servers: McpServers) -> None:
    servers.use([plain(exclude_tools=("echo",))])
    await until_ready(servers, "plain")
    with pytest.raises(NotFound, match="echo"):
        await servers.call("plain", "echo", {})


@pytest.mark.alone
async def test_a_call_that_takes_too_long_is_given_up(servers: McpServers) -> None:
    servers.use([plain(call_seconds=0.2)])
    await until_ready(servers, "plain")
    began = time.monotonic()
    with pytest.raises(ServerUnavailable, match=r"no answer within 0\.2 seconds") as error:
        await servers.call("plain", "slow", {"seconds": 1})
    assert time.monotonic() - began < 0.9
    assert "raise callTimeout of" in error.value.hint


@pytest.mark.alone
async def test_a_call_ends_at_once_when_the_server_dies(servers: McpServers) -> None:
    servers.use([faulty("dies_mid_call", call_seconds=60.0)])
    await until_ready(servers, "dies_mid_call")
    began = time.monotonic()
    with pytest.raises(ServerUnavailable, match="connection was closed"):
        await servers.call("dies_mid_call", "work", {})
    assert time.monotonic() - began < 5


async def test_a_call_ends_at_once_when_its_server_is_removed(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    calling = asyncio.create_task(servers.call("plain", "slow", {"seconds": 30}))
    await asyncio.sleep(0)
    servers.use([])
    with pytest.raises((ServerUnavailable, NotFound)):
        async with asyncio.timeout(5):
            await calling


async def test_many_calls_at_once_get_their_own_answers(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    answers = await asyncio.gather(*(servers.call("plain", "echo", {"n": number}) for number in range(200)))
    assert [json.loads(text(answer))["n"] for answer in answers] == list(range(200))


async def test_arguments_that_no_wire_can_carry_do_no_harm(servers: McpServers) -> None:
    servers.use([plain()])
    await until_ready(servers, "plain")
    nested: dict[str, object] = {}
    for _ in range(100):
        nested = {"deeper": nested}
    with pytest.raises(InvalidRequest, match="deeper"):
        await servers.call("plain", "echo", nested)
    odd = {"text": "\ud800", "number": float("inf"), "list": ("a", 1)}
    result = json.loads(text(await servers.call("plain", "echo", odd)))
    assert result == {"text": "\ufffd", "number": None, "list": ["a", 1]}
    assert text(await servers.call("plain", "\ud800", {})) == "{}"


async def test_tools_are_called_by_the_name_that_the_server_gave_them(servers: McpServers) -> None:
    servers.use([faulty("names_that_need_care")])
    await until_ready(servers, "names_that_need_care")
    for name, wire_name in (("padded", "' padded '"), ("nul\ufffd", r"'nul\x00'"), ("dots.and-dashes",) * 2):
        assert text(await servers.call("names_that_need_care", name, {})).strip("'") == wire_name.strip("'")


@pytest.mark.requirement("TS-001")
async def test_a_command_gets_its_own_environment_folder_and_arguments_and_no_more(
    servers: McpServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_GATEWAY", "hidden")
    odd = ("2025-11-25", "$HOME", "a b", "`x`", "*", "; rm -rf x")
    spec = plain(env={"TOKEN": "abcdef"})
    servers.use([type(spec)(spec.name, spec.transport, spec.command, (*spec.args, *odd), spec.env, spec.cwd)])
    await until_ready(servers, "plain")
    seen = json.loads(text(await servers.call("plain", "surroundings", {})))
    assert seen["args"] == list(odd)
    assert seen["cwd"] == str(ROOT)
    assert seen["env"]["TOKEN"] == "abcdef"
    assert "PATH" in seen["env"]
    assert "A_SECRET_OF_THE_GATEWAY" not in seen["env"]
