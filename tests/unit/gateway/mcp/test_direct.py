"""All tools themselves, for clients that search them on their own: listed, called, read on, asked about."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskStatus
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Tool

from tests.unit.gateway.mcp.clients import MODERN, MODES, text_of
from tests.unit.gateway.mcp.gateway_double import EVERY_BLOCK, GatewayDouble, down, tool
from tests.unit.gateway.mcp.ruled_gateway import RuledGateway, form_answer
from toolscript.core.errors import Forbidden, ServerRejected
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.approvals import HELD, Review, Status
from toolscript.gateway.listed_tools import MAX_PAGE, listed_name
from toolscript.gateway.mcp.direct import create_direct_server
from toolscript.gateway.mcp.large_results import MAX_BYTES, LargeResults
from toolscript.gateway.model import TOOLS, Change
from toolscript.gateway.rules import CallRules, Effect, Rule

pytestmark = [pytest.mark.parametrize("mode", MODES), pytest.mark.requirement("GW-006")]

LONG_NAME = "n" * 70


def defined(server: str, name: str, **definition: object) -> Item:
    sent = {"name": name, "inputSchema": {"type": "object"}, **definition}
    promised: Any = definition.get("outputSchema")
    return replace(tool(server, name, ""), definition=json.dumps(sent), output_schema=promised)


@asynccontextmanager
async def connected(
    gateway: GatewayDouble, mode: str, answer: Any = None, heard: Any = None
) -> AsyncIterator[Client]:
    server = create_direct_server(gateway, "1.2.3", results=LargeResults())
    async with Client(server, mode=mode, elicitation_callback=answer, message_handler=heard) as client:
        yield client


async def listed(client: Client) -> Sequence[Tool]:
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        assert len(page.tools) <= MAX_PAGE + 1
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def test_tools_are_listed_page_by_page_and_one_that_reads_on(mode: str) -> None:
    found = [tool("catalog", f"tool-{number:03}", "") for number in range(2 * MAX_PAGE + 10)]
    async with connected(GatewayDouble(found=found), mode) as client:
        names = [tool.name for tool in await listed(client)]
    assert names == ["read_result", *(f"catalog__{item.name}" for item in found)]


async def test_a_definition_reaches_the_client_whole(mode: str) -> None:
    sent: dict[str, Any] = {
        "title": "Draw",
        "description": "Draws a line.",
        "inputSchema": {
            "type": "object",
            "properties": {"at": {"type": ["number", "null"], "default": None}},
            "$defs": {"unused": {}},
        },
        "outputSchema": {"type": "object", "properties": {"drawn": {"type": "boolean"}}},
        "annotations": {"readOnlyHint": False, "title": "A line"},
        "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png"}],
        "_meta": {"com.example/group": {"of": 1}},
    }
    async with connected(GatewayDouble(found=[defined("paint", "draw", **sent)]), mode) as client:
        [_, shown] = await listed(client)
    assert shown.model_dump(by_alias=True, exclude_unset=True) == {"name": "paint__draw", **sent}


@pytest.mark.parametrize(
    "malformed",
    [{"inputSchema": {"properties": {}}}, {"title": 1}, {"annotations": {"readOnlyHint": "x"}}, {"icons": "x"}],
)
async def test_a_malformed_definition_hides_no_other_tool(mode: str, malformed: dict[str, object]) -> None:
    found = [defined("good", "go"), defined("bad", "go", description="Goes.", **malformed)]
    async with connected(GatewayDouble(found=found), mode) as client:
        tools = {tool.name: tool for tool in await listed(client)}
    assert tools.keys() == {"read_result", "good__go", "bad__go"}
    assert (tools["bad__go"].description, tools["bad__go"].input_schema["type"]) == ("Goes.", "object")


async def test_a_cursor_that_nobody_gave_out_is_refused(mode: str) -> None:
    async with connected(GatewayDouble(), mode) as client:
        with pytest.raises(MCPError, match="no cursor"):
            await client.list_tools(cursor="?")


async def test_a_tool_is_called_by_the_name_that_is_listed_or_its_bare_name(mode: str) -> None:
    gateway = GatewayDouble(
        found=[tool("azure", LONG_NAME, ""), tool("files", "read", ""), tool("memo", "read", "")]
    )
    name = listed_name("azure", LONG_NAME)
    async with connected(gateway, mode) as client:
        await client.call_tool(name, {"a": 1})
        await client.call_tool(LONG_NAME, {"a": 2})
        await client.call_tool("files__read", {})
        with pytest.raises(MCPError, match="Unknown tool: read"):
            await client.call_tool("read", {})
    long_id = f"azure__{LONG_NAME}"
    assert gateway.calls == [(long_id, {"a": 1}), (long_id, {"a": 2}), ("files__read", {})]


async def test_a_result_is_the_tools_own(mode: str) -> None:
    reply = CallResult(EVERY_BLOCK, {"rows": 4})
    async with connected(GatewayDouble(replies={"files__read_file": reply}), mode) as client:
        result = await client.call_tool("files__read_file", {})
    blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
    assert (blocks, result.structured_content) == ([*EVERY_BLOCK], {"rows": 4})


@pytest.mark.parametrize(
    ("malformed", "shown"),
    [
        ({"type": "text", "text": "a", "annotations": {"priority": 7}}, {"type": "text", "text": "a"}),
        (
            {"type": "resource_link", "uri": "a://b"},
            {"type": "text", "text": '{"type":"resource_link","uri":"a://b"}'},
        ),
        ({"type": "image", "data": "AAAA"}, {"type": "text", "text": '{"type":"image","data":"4 characters"}'}),
        ({"type": "chart", "of": 1}, {"type": "text", "text": '{"type":"chart","of":1}'}),
    ],
)
async def test_a_malformed_block_loses_no_result(
    mode: str, malformed: dict[str, Any], shown: dict[str, Any]
) -> None:
    text = {"type": "text", "text": "done"}
    replies: dict[str, CallResult | Exception] = {"files__read_file": CallResult((malformed, text))}
    async with connected(GatewayDouble(replies=replies), mode) as client:
        result = await client.call_tool("files__read_file", {})
    assert not result.is_error
    blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
    assert blocks == [shown, text]


async def test_an_error_of_the_protocol_keeps_the_code_of_its_server(mode: str) -> None:
    rejected = ServerRejected("files: tools/call: no such path", details={"code": -32042})
    replies: dict[str, CallResult | Exception] = {"files__read_file": rejected, "files__write_file": down("files")}
    async with connected(GatewayDouble(replies=replies), mode) as client:
        with pytest.raises(MCPError, match="no such path") as raised:
            await client.call_tool("files__read_file", {})
        unavailable = await client.call_tool("files__write_file", {})
    assert raised.value.error.code == -32042
    assert unavailable.is_error


async def test_a_long_result_is_cut_and_read_on_with_a_tool_that_is_listed(mode: str) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    reply = CallResult(({"type": "text", "text": text},))
    async with connected(GatewayDouble(replies={"files__read_file": reply}), mode) as client:
        cut = text_of(await client.call_tool("files__read_file", {}))
        arguments = json.JSONDecoder().raw_decode(cut[cut.rindex("read_result {") + len("read_result ") :])[0]
        rest = text_of(await client.call_tool("read_result", arguments))
        gone = await client.call_tool("read_result", {"id": "0"})
    assert rest.startswith(text[arguments["offset"] :][:1_000])
    assert gone.is_error


@pytest.mark.parametrize(("length", "is_cut"), [(100, False), (2 * MAX_BYTES, True)])
async def test_a_client_accepts_a_long_result_of_a_tool_that_promises_data(
    mode: str, length: int, is_cut: bool
) -> None:
    """Clients compare what they get with the tool's output schema, and refuse a result without data."""
    schema = {"type": "object", "properties": {"rows": {"type": "string"}}, "required": ["rows"]}
    found = [defined("files", "read", outputSchema=schema)]
    text = {"type": "text", "text": "x" * 2 * MAX_BYTES}
    reply = CallResult((text,), {"rows": "y" * length})
    async with connected(GatewayDouble(found=found, replies={"files__read": reply}), mode) as client:
        await listed(client)
        result = await client.call_tool("files__read", {})
    assert "read_result {" in text_of(result)
    assert (result.is_error, result.structured_content is None) == (is_cut, is_cut)
    assert text_of(result).startswith("The call succeeded; its result is too large.") is is_cut


async def test_a_text_that_is_shown_whole_keeps_its_data_though_quotes_make_that_longer(mode: str) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    text = ('a line with "quotes"\n' * 1_000)[: MAX_BYTES - 100]
    reply = CallResult(({"type": "text", "text": text},), {"result": text})
    found = [defined("files", "read", outputSchema=schema)]
    async with connected(GatewayDouble(found=found, replies={"files__read": reply}), mode) as client:
        await listed(client)
        result = await client.call_tool("files__read", {})
    assert (result.is_error, text_of(result), result.structured_content) == (False, text, {"result": text})


async def test_large_data_that_was_not_promised_makes_no_error(mode: str) -> None:
    reply = CallResult((), {"rows": "y" * 2 * MAX_BYTES})
    gateway = GatewayDouble(found=[defined("files", "read")], replies={"files__read": reply})
    async with connected(gateway, mode) as client:
        result = await client.call_tool("files__read", {})
    assert not result.is_error
    assert "read_result {" in text_of(result)


async def test_what_is_held_is_neither_listed_nor_called_and_the_reason_is_given(mode: str) -> None:
    review = Review(
        "0" * 32, "files__drop", "tool", "files", "drop", Status.NEW, held=True, seen_at=0, difference="+"
    )
    refused = Forbidden(
        "files__read_file is held: it changed", hint="`toolscript review`", details={HELD: "changed"}
    )
    gateway = GatewayDouble(waiting=[review], replies={"files__read_file": refused})
    async with connected(gateway, mode) as client:
        assert "files__drop" not in [tool.name for tool in await listed(client)]
        answers = [await client.call_tool(name, {}) for name in ("files__drop", "drop", "files__read_file")]
    assert [answer.is_error for answer in answers] == [True] * 3
    assert [text_of(answer).partition(":")[0] for answer in answers] == [
        "files__drop is held",
        "files__drop is held",
        "files__read_file is held",
    ]
    assert all("Only the user can approve it" in text_of(answer) for answer in answers)
    assert not any("toolscript" in text_of(answer) for answer in answers)


@pytest.mark.parametrize(("action", "calls"), [("accept", 1), ("decline", 0)])
async def test_a_person_is_asked_where_a_rule_wants_it(mode: str, action: str, calls: int) -> None:
    asked: list[Any] = []
    gateway = RuledGateway(rules=CallRules([Rule("files__*", do=Effect.ASK, place="rule 1 of a file")]))
    async with connected(gateway, mode, form_answer(action, asked)) as client:
        result = await client.call_tool("write_file", {"path": "a.txt"})
    assert gateway.calls == [("files__write_file", {"path": "a.txt"})] * calls
    assert isinstance(result, CallToolResult)
    assert result.is_error is not bool(calls)
    assert [question.message.splitlines()[2] for question in asked] == ['Arguments: {"path":"a.txt"}']


async def test_a_client_hears_that_tools_have_changed(mode: str) -> None:
    heard: list[str] = []
    changed = anyio.Event()

    async def note(message: Any) -> None:
        heard.append(message.method)
        changed.set()

    gateway = GatewayDouble()
    async with connected(gateway, mode, heard=note) as client, anyio.create_task_group() as tasks:
        if mode == MODERN:
            await tasks.start(_listen, client)
        await client.list_tools()
        while not gateway.watched:
            await anyio.lowlevel.checkpoint()
        for _, tell in gateway.watched:
            tell(Change(TOOLS))
        with anyio.fail_after(10):
            await changed.wait()
        tasks.cancel_scope.cancel()
    assert heard == ["notifications/tools/list_changed"]


async def _listen(client: Client, *, task_status: TaskStatus[None]) -> None:
    kinds = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
    async with client.listen(**kinds):  # type: ignore[arg-type]
        task_status.started()
        await anyio.sleep_forever()
