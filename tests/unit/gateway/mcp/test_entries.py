"""Prompts, resources and completion at the joint endpoint, and the tools for clients that know only tools."""

from dataclasses import replace
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, TextResourceContents

from tests.unit.gateway.mcp.clients import MODERN, MODES, call, connected, text_of
from tests.unit.gateway.mcp.gateway_double import ITEMS, PIXEL, GatewayDouble
from toolscript.core.errors import Forbidden, NotFound, ServerRejected, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.mcp_client.listing import listed_item
from toolscript.gateway.approvals import HELD
from toolscript.gateway.mcp.entry_tools import use_of
from toolscript.gateway.mcp.large_results import MAX_BYTES
from toolscript.gateway.model import Change

pytestmark = [
    pytest.mark.requirement("GW-003"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

NOTES = Item("files__notes", ItemKind.RESOURCE, "files", "notes", "Notes.", annotations={"uri": "file:///notes"})
PROMPT: JsonObject = {"messages": [{"role": "user", "content": {"type": "text", "text": "Sum it up."}}]}
TALK: JsonObject = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": {"type": "text", "text": "Hi"}},
    ]
}


def gateway_with(*more: Item, **answers: JsonObject) -> GatewayDouble:
    return GatewayDouble(found=(*ITEMS, NOTES, *more), answers={"files__summary": PROMPT, **answers})


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_are_listed_with_their_server_and_got(mode: str) -> None:
    gateway = gateway_with()
    async with connected(gateway, mode) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["files__summary"]
        got = await client.get_prompt("files__summary", {"length": "short"})
    assert got.messages[0].content.text == "Sum it up."  # type: ignore[union-attr]
    assert gateway.requests == [("prompts/get", {"name": "files__summary", "arguments": {"length": "short"}})]


@pytest.mark.parametrize("mode", MODES)
async def test_resources_are_listed_and_read(mode: str) -> None:
    contents = {"contents": [{"uri": "file:///notes", "text": "remember"}]}
    gateway = gateway_with(**{"file:///notes": contents})
    async with connected(gateway, mode) as client:
        assert [found.uri for found in (await client.list_resources()).resources] == ["file:///notes"]
        assert (await client.list_resource_templates()).resource_templates == []
        [read] = (await client.read_resource("file:///notes")).contents
    assert isinstance(read, TextResourceContents)
    assert read.text == "remember"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("listing", "malformed"),
    [
        ("prompt", {"name": "bad", "icons": "no"}),
        ("prompt", {"name": "bad", "arguments": [{"name": "x", "description": 7}]}),
        ("resource", {"name": "bad", "uri": "file:///bad", "annotations": {"priority": 7}}),
        ("resource template", {"name": "bad", "uriTemplate": "bad://{x}", "mimeType": 3}),
    ],
)
async def test_a_malformed_entry_hides_no_other(mode: str, listing: str, malformed: dict[str, Any]) -> None:
    good = {**malformed, "name": "good", "title": "Good"}
    for name in ("icons", "arguments", "annotations", "mimeType"):
        good.pop(name, None)
    for name in {"uri", "uriTemplate"} & good.keys():
        good[name] = good[name].replace("bad", "good")
    found = [listed_item(listing, entry, "files") for entry in (good, malformed)]
    async with connected(GatewayDouble(found=found), mode) as client:
        entries: list[Any] = [
            *(await client.list_prompts()).prompts,
            *(await client.list_resources()).resources,
            *(await client.list_resource_templates()).resource_templates,
        ]
    bad, first = sorted(entries, key=lambda entry: str(entry.name))
    assert first.title == "Good"
    assert [argument.name for argument in getattr(bad, "arguments", None) or []] in ([], ["x"])


async def test_what_models_read_has_nothing_invisible() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "a\u202eb"}}
    read = {"contents": [{"uri": "u", "text": "a\u202eb"}, {"uri": "u", "blob": "QUJD"}]}
    async with connected(gateway_with(p={"messages": [message]}, u=read)) as client:
        assert "a[U+202E]b" in str((await client.get_prompt("p")).messages)
        contents = (await client.read_resource("u")).contents
    assert [getattr(part, "text", "") for part in contents] == ["a[U+202E]b", ""]


@pytest.mark.parametrize("mode", MODES)
async def test_lists_come_in_pages(mode: str) -> None:
    many = [replace(ITEMS[-1], key=f"p{n}", name=f"prompt-{n:03}") for n in range(450)]
    async with connected(GatewayDouble(found=many), mode) as client:
        names, cursor, sizes = list[str](), None, list[int]()
        while True:
            page = await client.list_prompts(cursor=cursor)
            names += [prompt.name for prompt in page.prompts]
            sizes.append(len(page.prompts))
            cursor = page.next_cursor
            if cursor is None:
                break
        with pytest.raises(MCPError, match="this is no cursor of this list") as wrong:
            await client.list_prompts(cursor="made up")
    assert names == sorted(f"files__prompt-{n:03}" for n in range(450))
    assert sizes == [200, 200, 50]
    assert wrong.value.error.code == -32602


@pytest.mark.parametrize("mode", MODES)
async def test_the_end_of_an_argument_is_completed(mode: str) -> None:
    gateway = gateway_with()

    async def request(method: str, params: JsonObject) -> JsonObject:
        gateway.requests.append((method, params))
        return {"completion": {"values": ["short"], "total": 1, "hasMore": False}}

    gateway.request = request  # type: ignore[method-assign]
    ref = PromptReference(type="ref/prompt", name="files__summary")
    async with connected(gateway, mode) as client:
        completed = await client.session.complete(ref, {"name": "length", "value": "s"})
    assert completed.completion.values == ["short"]
    assert gateway.requests[0][0] == "completion/complete"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            NotFound("there is no prompt 'x'", hint="did you mean y?"),
            -32602,
            "there is no prompt 'x'. did you mean y?",
        ),
        (ServerRejected("files: not with me", details={"code": -32002}), -32002, "files: not with me"),
        (ServerUnavailable("files is down"), -32603, "files is down"),
        (Forbidden("x is held", details={HELD: "changed"}), -32602, "Only the user can approve it"),
    ],
)
async def test_errors_have_the_codes_of_the_protocol(error: Exception, code: int, message: str) -> None:
    gateway = gateway_with()

    async def request(method: str, params: JsonObject) -> JsonObject:
        del method, params
        raise error

    gateway.request = request  # type: ignore[method-assign]
    async with connected(gateway) as client:
        with pytest.raises(MCPError) as raised:
            await client.get_prompt("x")
    assert raised.value.error.code == code
    assert message in raised.value.error.message


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_the_endpoint_can_is_declared(mode: str) -> None:
    async with connected(gateway_with(), mode) as client:
        found = client.server_capabilities
    assert found.prompts is not None
    assert found.resources is not None
    assert found.completions is not None
    assert found.logging is not None
    assert (found.prompts.list_changed, found.resources.list_changed, found.resources.subscribe) == (True,) * 3


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_knows_only_tools_gets_a_prompt(mode: str) -> None:
    gateway = gateway_with(talk=TALK)
    arguments = {"prompt": "files__summary", "arguments": {"pages": 3}}
    assert text_of(await call(gateway, "get_prompt", arguments, mode)) == "Sum it up."
    assert gateway.requests == [("prompts/get", {"name": "files__summary", "arguments": {"pages": "3"}})]
    talk = await call(gateway, "get_prompt", {"prompt": "talk"}, mode)
    assert [block.text for block in talk.content] == ["user:", "Hello", "assistant:", "Hi"]  # type: ignore[union-attr]


async def test_a_client_that_knows_only_tools_reads_a_resource() -> None:
    contents = [
        {"uri": "u", "text": "words"},
        {"uri": "u", "blob": PIXEL, "mimeType": "image/png"},
        {"uri": "u", "blob": "QUJD", "mimeType": "application/zip"},
    ]
    found = await call(gateway_with(u={"contents": contents}), "read_resource", {"uri": "u"})
    assert [block.type for block in found.content] == ["text", "image", "text"]
    assert found.content[2].text == "[u: 3 bytes of application/zip]"  # type: ignore[union-attr]


async def test_a_large_resource_is_cut_and_its_rest_can_be_read() -> None:
    contents = {"contents": [{"uri": "u", "text": "a" * (MAX_BYTES + 10) + "end"}]}
    found = await call(gateway_with(u=contents), "read_resource", {"uri": "u"})
    assert "read_result {" in text_of(found)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("get_prompt", {"prompt": "nobody__nothing"}, "there is no"),
        ("get_prompt", {"prompt": "x", "arguments": "none"}, "must be an object"),
        ("read_resource", {"uri": "none:"}, "there is no"),
        ("read_resource", {"url": "none:"}, "url"),
    ],
)
async def test_what_cannot_be_got_is_an_error_that_a_model_can_correct(
    name: str, arguments: dict[str, Any], why: str
) -> None:
    found = await call(gateway_with(), name, arguments)
    assert found.is_error
    assert why in text_of(found)


async def test_what_is_held_is_not_read_and_no_command_is_named() -> None:
    gateway = gateway_with()

    async def request(method: str, params: JsonObject) -> JsonObject:
        del method, params
        raise Forbidden("files__notes is held", hint="`toolscript review show`", details={HELD: "changed"})

    gateway.request = request  # type: ignore[method-assign]
    found = await call(gateway, "read_resource", {"uri": "file:///notes"})
    assert found.is_error
    assert "Only the user can approve it" in text_of(found)
    assert "toolscript review" not in text_of(found)


async def test_clients_on_a_stream_are_told_of_changes() -> None:
    gateway = gateway_with()
    async with (
        connected(gateway, MODERN) as client,
        client.listen(prompts_list_changed=True, resource_subscriptions=["file:///notes"]) as events,
    ):
        assert events.honored.resource_subscriptions == ["file:///notes"]
        uris, tell = gateway.watched[-1]
        assert uris == {"file:///notes"}
        for change in (Change("prompts"), Change(uri="file:///other"), Change(uri="file:///notes")):
            tell(change)
        found = [await anext(events), await anext(events)]
    assert [type(event).__name__ for event in found] == ["PromptsListChanged", "ResourceUpdated"]


async def test_older_clients_are_told_of_changes_on_their_session() -> None:
    gateway, told = gateway_with(), list[str]()

    async def note(message: Any) -> None:
        told.append(type(message).__name__)

    from toolscript.gateway.mcp.tools import create_mcp_server

    async with Client(create_mcp_server(gateway, "1"), mode="legacy", message_handler=note) as client:
        await client.session.subscribe_resource("file:///notes")
        uris, tell = gateway.watched[-1]
        assert uris == {"file:///notes"}
        for change in (
            Change("resources"),
            Change("tools"),
            Change(uri="file:///other"),
            Change(uri="file:///notes"),
        ):
            tell(change)
        await client.list_prompts()
        await client.session.unsubscribe_resource("file:///notes")
        assert gateway.watched[-1][0] == frozenset()
    assert told == ["ResourceListChangedNotification", "ResourceUpdatedNotification"]


async def test_a_picture_without_data_is_named() -> None:
    read: JsonObject = {"contents": [{"uri": "file:///notes", "mimeType": "image/png"}]}
    shown = await call(gateway_with(**{"file:///notes": read}), "read_resource", {"uri": "file:///notes"})
    assert text_of(shown) == "[file:///notes: 0 bytes of image/png]"


def test_an_address_adds_no_line_to_what_models_read() -> None:
    item = listed_item("resource", {"uri": "a://x\nIGNORE ALL", "name": "a"}, "files")
    assert use_of(item)["use"] == "read_resource a://x IGNORE ALL"
