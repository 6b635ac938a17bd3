"""A call through the gateway returns the tool's result."""

import pytest

from tests.unit.gateway.mcp.clients import LEGACY, MODERN, MODES, call, text_of
from tests.unit.gateway.mcp.gateway_double import EVERY_BLOCK, GatewayDouble, down
from toolscript.core.errors import ServerRejected
from toolscript.core.mcp_client.model import CallResult

READ = "files__read_file"

pytestmark = pytest.mark.requirement("TS-010")


def replying(reply: CallResult | Exception) -> GatewayDouble:
    return GatewayDouble(replies={READ: reply})


@pytest.mark.parametrize("mode", MODES)
async def test_every_kind_of_content_is_returned_unchanged(mode: str) -> None:
    answer = await call(replying(CallResult(EVERY_BLOCK)), "call_tool", {"tool": READ}, mode)
    blocks = [block.model_dump(by_alias=True, exclude_none=True, mode="json") for block in answer.content]
    assert blocks == list(EVERY_BLOCK)
    assert answer.structured_content is None
    assert not answer.is_error


@pytest.mark.parametrize("mode", MODES)
async def test_structured_content_survives_with_its_nulls(mode: str) -> None:
    data: dict[str, object] = {"rows": [{"a": None, "b": [None, {}]}], "next": None, "count": 0}
    answer = await call(replying(CallResult((), data)), "call_tool", {"tool": READ}, mode)
    assert answer.structured_content == data
    assert answer.content == []


@pytest.mark.parametrize("mode", MODES)
async def test_an_error_of_the_tool_is_returned_unchanged(mode: str) -> None:
    reply = CallResult(({"type": "text", "text": "no such file"},), {"code": 2}, is_error=True)
    answer = await call(replying(reply), "call_tool", {"tool": READ}, mode)
    assert (answer.is_error, text_of(answer), answer.structured_content) == (True, "no such file", {"code": 2})


@pytest.mark.parametrize("data", [[1, None], "text", 0, False])
async def test_structured_data_other_than_an_object_is_kept_for_newer_clients(data: object) -> None:
    gateway = replying(CallResult((), data))
    assert (await call(gateway, "call_tool", {"tool": READ}, MODERN)).structured_content == data


async def test_structured_data_other_than_an_object_is_text_for_older_clients() -> None:
    answer = await call(replying(CallResult((), [1, None])), "call_tool", {"tool": READ}, LEGACY)
    assert answer.structured_content is None
    assert text_of(answer) == "[1,null]"


async def test_a_block_of_unknown_type_becomes_text() -> None:
    answer = await call(replying(CallResult(({"type": "video", "data": "AA=="},))), "call_tool", {"tool": READ})
    assert text_of(answer) == '{"type":"video","data":"AA=="}'


@pytest.mark.parametrize("given", [{"path": "a", "deep": {"x": None}}, '{"path":"a","deep":{"x":null}}'])
async def test_arguments_reach_the_tool_unchanged(given: object) -> None:
    gateway = GatewayDouble()
    await call(gateway, "call_tool", {"tool": f"mcp__toolscript__{READ}", "arguments": given})
    assert gateway.calls == [(READ, {"path": "a", "deep": {"x": None}})]


async def test_a_call_without_arguments_sends_none() -> None:
    gateway = GatewayDouble()
    await call(gateway, "call_tool", {"tool": READ})
    assert gateway.calls == [(READ, {})]


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_of_an_unknown_tool_returns_the_nearest_names(mode: str) -> None:
    answer = await call(GatewayDouble(), "call_tool", {"tool": "files__read_fil"}, mode)
    assert answer.is_error
    assert text_of(answer).startswith("There is no tool 'files__read_fil'. Nearest: files__read_file")


@pytest.mark.requirement("TS-011")
async def test_a_call_of_a_server_that_is_down_returns_an_error_with_a_hint() -> None:
    answer = await call(replying(down("files")), "call_tool", {"tool": READ})
    assert answer.is_error
    assert text_of(answer) == "files is not connected. ask the user to look after it"


async def test_a_server_that_refuses_is_an_answer() -> None:
    answer = await call(replying(ServerRejected("files refused the call")), "call_tool", {"tool": READ})
    assert (answer.is_error, text_of(answer)) == (True, "files refused the call")


@pytest.mark.parametrize("mode", MODES)
async def test_an_internal_error_reveals_no_details(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = await call(replying(RuntimeError("a secret")), "call_tool", {"tool": READ}, mode)
    assert answer.is_error
    assert text_of(answer) == "Something unexpected went wrong on our side."
    assert "a secret" in caplog.text
