"""What MCP clients' sessions put into their models' contexts is added up, and what all tools would have."""

import asyncio

import pytest

from tests.unit.gateway.mcp.gateway_double import ITEMS, GatewayDouble
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.tokens import definitions_of, listed_bytes, size_of
from toolscript.gateway.activity import SessionUse
from toolscript.gateway.callers import client_is
from toolscript.gateway.mcp.definitions import DEFINITIONS
from toolscript.gateway.mcp.session_use import SESSION_SECONDS, SessionUsage
from toolscript.gateway.savings import report_of
from toolscript.testing import MemoryActivity

pytestmark = pytest.mark.requirement("GW-005")

ANSWER = CallResult(({"type": "text", "text": "four rows ✓"}, {"type": "image", "data": "x" * 1_000}))


async def note(usage: SessionUsage, client: str, times: int = 1) -> None:
    with client_is(client):
        for _ in range(times):
            usage.note("call_tool", {"tool": "a__b"}, ANSWER)
    while usage._measuring:
        await asyncio.wait(usage._measuring)


async def test_a_request_counts_what_the_model_writes_and_the_text_it_reads() -> None:
    log = MemoryActivity()
    await note(SessionUsage(GatewayDouble(), log, is_one=True), "cursor", 2)
    [use] = log.sessions.values()
    written = len('{"name":"call_tool","arguments":{"tool":"a__b"}}')
    assert (use.client, use.requests, use.used_bytes) == ("cursor", 2, 2 * (written + len("four rows ✓".encode())))
    assert use.own_bytes == listed_bytes(DEFINITIONS)
    assert (use.listed_bytes, use.tools) == (listed_bytes(definitions_of(ITEMS)), 4)


async def test_clients_over_http_have_a_session_each_and_another_after_a_pause() -> None:
    now = 1_000.0
    log = MemoryActivity()
    usage = SessionUsage(GatewayDouble(), log, is_one=False, clock=lambda: now)
    for client in ("cursor", "claude", "cursor"):
        await note(usage, client)
    assert sorted(use.requests for use in log.sessions.values()) == [1, 2]
    now += SESSION_SECONDS + 1
    await note(usage, "cursor")
    assert len(log.sessions) == 3


async def test_a_client_over_stdio_has_one_session_however_long_it_pauses() -> None:
    now = 1_000.0
    log = MemoryActivity()
    usage = SessionUsage(GatewayDouble(), log, is_one=True, clock=lambda: now)
    await note(usage, "cursor")
    now += 100 * SESSION_SECONDS
    await note(usage, "cursor")
    assert len(log.sessions) == 1


def test_a_report_takes_each_list_once_per_session() -> None:
    sessions = [
        SessionUse("1", "cursor", 1.0, 3, used_bytes=900, own_bytes=450, listed_bytes=45_000, tools=9),
        SessionUse("2", "cursor", 2.0, 1, used_bytes=450, own_bytes=450, listed_bytes=45_000, tools=9),
        SessionUse("3", "claude", 3.0, 1, used_bytes=9_000, own_bytes=450, listed_bytes=4_500, tools=1),
        SessionUse("4", "claude", 4.0, 1, used_bytes=450),
    ]
    report = report_of(sessions, 30, 4.5, "estimated")
    first, second = report.clients
    assert (first.client, first.sessions, first.requests) == ("cursor", 2, 4)
    assert (first.listed, first.own, first.used, first.saved, first.share) == (20_000, 200, 300, 19_500, 0.975)
    assert (second.client, second.saved) == ("claude", 1_000 - 100 - 2_000), "a loss is shown as one"
    assert (report.total.sessions, report.total.saved, report.unmeasured) == (3, 18_400, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True, False], "b": {}}, '{"a":[1,2.5,null,true,false],"b":{}}'),
        ([], "[]"),
        ("né", '"né"'),
        ({"a": "b"}, '{"a":"b"}'),
    ],
)
def test_the_size_of_a_value_is_that_of_its_compact_json(value: object, text: str) -> None:
    assert size_of(value) == len(text.encode())
