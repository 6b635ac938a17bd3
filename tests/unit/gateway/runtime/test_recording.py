"""A gateway that logs: each search and call once, with its client and how it ended, and without secrets."""

import asyncio
import json
import time

import pytest

from tests.doubles import MemoryActivity
from tests.unit.gateway.mcp.gateway_double import GatewayDouble, down
from toolscript.core.errors import NotFound, NotReady, OutcomeUnknown, ServerRejected, ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerSpec, Transport
from toolscript.gateway import recording
from toolscript.gateway.activity import Action, ActivityFilter, NoActivity, Outcome, Record
from toolscript.gateway.callers import ITSELF, by_itself, client_is
from toolscript.gateway.model import LocalQuery
from toolscript.gateway.recording import RecordedGateway, arguments_shown

pytestmark = pytest.mark.requirement("GW-005")

READ = "files__read_file"


async def rows(log: MemoryActivity) -> list[Record]:
    return [*await log.page(ActivityFilter(), None, 100)]


async def test_a_call_is_logged_with_its_client_names_sizes_and_time() -> None:
    log = MemoryActivity()
    with client_is("cursor"):
        result = await RecordedGateway(GatewayDouble(), log).call(READ, {"path": "secret.txt"})
    assert result == CallResult(({"type": "text", "text": f"called {READ}"},))
    [row] = await rows(log)
    assert (row.entry.client, row.entry.server, row.entry.tool) == ("cursor", "files", "read_file")
    assert (row.outcome, row.error, row.entry.arguments) == (Outcome.OK, "", None)
    assert row.entry.argument_bytes == len('{"path":"secret.txt"}')
    assert row.result_bytes is not None
    assert row.result_bytes > len(READ)
    assert row.took_ms is not None


async def test_a_tool_that_is_called_without_its_server_is_logged_with_it() -> None:
    log = MemoryActivity()
    # The double calls tools by their full names alone.
    with pytest.raises(NotFound):
        await RecordedGateway(GatewayDouble(), log).call("read_file", {})
    [row] = await rows(log)
    assert (row.entry.server, row.entry.tool) == ("files", "read_file")


async def test_the_entry_of_a_call_is_written_before_it_is_sent_and_completed_before_its_answer() -> None:
    events: list[str] = []

    class Witness(MemoryActivity):
        async def written(self) -> None:
            [row] = await rows(self)
            events.append(f"written as {row.outcome}")

    class Server(GatewayDouble):
        async def call(self, tool: str, arguments: JsonObject) -> CallResult:
            events.append("sent")
            return await super().call(tool, arguments)

    await RecordedGateway(Server(), Witness()).call(READ, {})
    assert events == ["written as running", "sent", "written as ok"]


@pytest.mark.parametrize(
    ("reply", "outcome", "error"),
    [
        (CallResult(is_error=True), Outcome.ERROR, "TOOL_ERROR"),
        (ServerRejected("no such row"), Outcome.ERROR, "UNAVAILABLE"),
        (down("files"), Outcome.REFUSED, "UNAVAILABLE"),
        (NotFound("the config leaves it out"), Outcome.REFUSED, "NOT_FOUND"),
        (OutcomeUnknown("no answer within 60 seconds"), Outcome.UNKNOWN, "UNAVAILABLE"),
    ],
)
async def test_the_outcome_says_whether_a_call_was_sent(
    reply: CallResult | ToolscriptError, outcome: Outcome, error: str
) -> None:
    log = MemoryActivity()
    gateway = RecordedGateway(GatewayDouble(replies={READ: reply}), log)
    if isinstance(reply, ToolscriptError):
        with pytest.raises(type(reply)):
            await gateway.call(READ, {})
    else:
        await gateway.call(READ, {})
    [row] = await rows(log)
    assert (row.outcome, row.error) == (outcome, error)


async def test_a_call_that_its_client_cancels_is_unknown() -> None:
    sent = asyncio.Event()

    class Slow(GatewayDouble):
        async def call(self, tool: str, arguments: JsonObject) -> CallResult:
            sent.set()
            await asyncio.Event().wait()
            return await super().call(tool, arguments)

    log = MemoryActivity()
    calling = asyncio.create_task(RecordedGateway(Slow(), log).call(READ, {}))
    await sent.wait()
    calling.cancel()
    await asyncio.wait([calling])
    [row] = await rows(log)
    assert (row.outcome, row.error) == (Outcome.UNKNOWN, "CANCELLED")


async def test_a_fault_of_ours_leaves_the_call_unknown() -> None:
    log = MemoryActivity()
    with pytest.raises(RuntimeError):
        await RecordedGateway(GatewayDouble(replies={READ: RuntimeError("bug")}), log).call(READ, {})
    [row] = await rows(log)
    assert row.outcome is Outcome.UNKNOWN


async def test_a_name_that_is_no_tool_is_logged_as_refused() -> None:
    log = MemoryActivity()
    with pytest.raises(ToolscriptError):
        await RecordedGateway(GatewayDouble(), log).call("nothing at all", {})
    [row] = await rows(log)
    assert (row.entry.server, row.entry.tool, row.outcome) == ("", "nothing at all", Outcome.REFUSED)


async def test_a_search_is_logged_and_its_words_are_not() -> None:
    log = MemoryActivity()
    with client_is("cli"):
        await RecordedGateway(GatewayDouble(), log).search(LocalQuery("read my diary"))
    [row] = await rows(log)
    assert (row.entry.action, row.entry.client, row.outcome) == (Action.SEARCH, "cli", Outcome.OK)
    assert (row.entry.argument_bytes, row.entry.arguments) == (13, None)
    assert row.result_bytes


async def test_a_search_that_fails_is_logged_as_an_error() -> None:
    log = MemoryActivity()
    with pytest.raises(NotReady):
        await RecordedGateway(GatewayDouble(broken=NotReady("not yet")), log).search(LocalQuery("read"))
    [row] = await rows(log)
    assert (row.outcome, row.error) == (Outcome.ERROR, "UNAVAILABLE")


async def test_a_client_that_states_the_gateways_own_name_is_logged() -> None:
    log = MemoryActivity()
    with client_is(ITSELF):
        await RecordedGateway(GatewayDouble(), log).search(LocalQuery("read"))
    [row] = await rows(log)
    assert row.entry.client == "mcp"


async def test_searches_of_the_gateway_itself_are_not_logged_and_no_call_is_its_own() -> None:
    log = MemoryActivity()
    gateway = RecordedGateway(GatewayDouble(), log)
    with by_itself():
        await gateway.search(LocalQuery("read"))
        assert await rows(log) == []
        await gateway.call(READ, {})
    [row] = await rows(log)
    assert row.entry.client == "mcp"


async def test_arguments_are_logged_when_asked_for_with_secrets_masked() -> None:
    log = MemoryActivity()
    spec = ServerSpec("files", Transport.STDIO, env={"DB": "hunter2-of-the-server"})
    gateway = RecordedGateway(GatewayDouble(), log, arguments=True, find_server=lambda _: spec)
    await gateway.call(READ, {"path": "a.txt", "api_key": "abc-123-def", "note": "it is hunter2-of-the-server"})
    await gateway.search(LocalQuery("use token ghp_abcdefghijklmnop please"))
    search, call = await rows(log)
    assert json.loads(call.entry.arguments or "") == {"path": "a.txt", "api_key": "***", "note": "it is ***"}
    assert json.loads(search.entry.arguments or "") == {"query": "use token *** please"}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"headers": {"Authorization": "Bearer abcdef"}}, {"headers": {"Authorization": "***"}}),
        ({"command": "curl -H 'Authorization: Bearer abcdef' x"}, None),
        ({"passwords": ["one-long", "two-long"]}, {"passwords": ["***", "***"]}),
        ({"password": 12345678}, {"password": "***"}),
        ({"args": "--token s3cr3t --limit 5"}, {"args": "--token *** --limit 5"}),
        ({"text": 'key "sk-live_abcdef123456", and more'}, {"text": 'key "***", and more'}),
        ({"url": "https://u:hunter22@example.com/x"}, {"url": "***"}),
        ({"ghp_abcdefghijklmnop": 1}, {"***": 1}),
        ({"path": "notes.txt", "deep": [{"x": None, "y": 1.5, "z": True}]}, None),
        ({"text": "x " * 400}, {"text": f"{'x ' * 250}..."}),
        ({"texts": ["y " * 200] * 50}, {"left_out": "20,161 bytes"}),
        ({"lone": "\ud800"}, {"lone": "\ufffd"}),
    ],
)
def test_what_looks_like_a_secret_is_masked_wherever_it_is(given: JsonObject, shown: JsonObject | None) -> None:
    text = arguments_shown(given)
    for secret in ("abcdef", "hunter22", "s3cr3t", "one-long", "12345678"):
        assert secret not in text
    if shown is not None:
        assert json.loads(text) == shown


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a.txt", "content": "word9 " * 400_000},
        {"path": "a.txt", "content": "x" * 2_000_000},
        {"texts": ["word9 " * 100] * 4_000},
        {"numbers": [[7] * 1_000] * 200},
        {"word9 " * 400_000: 1},
    ],
)
def test_large_arguments_are_shown_quickly(given: JsonObject) -> None:
    began = time.process_time()
    text = arguments_shown(given, ServerSpec("up", Transport.STDIO, env={"DB": "hunter2-of-the-server"}))
    assert time.process_time() - began < 0.5
    assert len(text) < 1_000
    if "path" in given:
        assert json.loads(text)["path"] == "a.txt"


@pytest.mark.parametrize("secret", ["ghp_abcdefghijklmnop", "hunter2 of the server", "Bearer abcdef"])
def test_no_cut_of_a_long_text_leaves_half_a_secret(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ServerSpec("up", Transport.STDIO, env={"DB": "hunter2 of the server"})
    for most in range(100, 140):
        monkeypatch.setattr(recording, "MAX_SEARCHED", most)
        shown = arguments_shown({"text": f"{'x ' * 50}{secret} {'y ' * 50}"}, spec)
        for half in ("ghp", "hunter", "abc"):
            assert half not in shown
        assert shown.startswith('{"text":"x x ')
        assert shown.endswith('..."}')


async def test_a_gateway_without_a_log_answers_as_ever() -> None:
    gateway = RecordedGateway(GatewayDouble(), NoActivity())
    assert (await gateway.call(READ, {})).content
    assert (await gateway.search(LocalQuery("read a file"))).hits
    assert (await gateway.health()).activity == ""


async def test_the_health_says_that_the_log_is_not_written() -> None:
    log = MemoryActivity()
    log.problem = "activity.db cannot be written: disk full"
    assert (await RecordedGateway(GatewayDouble(), log).health()).activity == log.problem
