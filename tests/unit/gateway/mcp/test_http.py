"""The gateway's endpoint over HTTP: clients of both protocol versions, and plain HTTP requests."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.unit.gateway.mcp.clients import text_of
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.mcp.serving import serve_gateway
from toolscript.gateway.mcp.definitions import DEFINITIONS

ACCEPT = {"Accept": "application/json, text/event-stream"}
ME = {"name": "old", "version": "1"}
OLD = {**ACCEPT, "MCP-Protocol-Version": "2025-06-18"}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with serve_gateway(GatewayDouble()) as served:
        yield served


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
        yield client


def message(method: str, number: int | None = 1, **params: Any) -> dict[str, Any]:
    said = {"jsonrpc": "2.0", "method": method, "params": params}
    return said if number is None else {**said, "id": number}


def result_of(answer: httpx2.Response) -> dict[str, Any]:
    """Return the answer to a request, sent as JSON or as the only event of a stream."""
    assert answer.status_code == 200, answer.text
    if answer.headers["content-type"].startswith("application/json"):
        body: dict[str, Any] = answer.json()
    else:
        (data,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        body = httpx2.Response(200, text=data.removeprefix("data: ")).json()
    return body.get("result") or {"error": body["error"]}


@pytest.mark.requirement("TS-010")
@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_client_searches_and_calls_over_http(url: str, mode: str, protocol: str) -> None:
    async with Client(url, mode=mode) as client:
        assert client.protocol_version == protocol
        search_result = await client.call_tool("search_tools", {"query": "read file", "limit": 1})
        called = await client.call_tool("call_tool", {"tool": "files__read_file"})
    assert text_of(search_result).startswith("files__read_file(path?) 1.00")
    assert text_of(called) == "called files__read_file"


@pytest.mark.requirement("TS-010")
async def test_a_client_of_2025_06_18_initialises_lists_and_calls(url: str, http: httpx2.AsyncClient) -> None:
    client: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ME}
    welcome = await http.post(url, headers=ACCEPT, json=message("initialize", **client))
    assert result_of(welcome)["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in welcome.headers
    ready = await http.post(url, headers=OLD, json=message("notifications/initialized", None))
    assert ready.status_code == 202
    listed = result_of(await http.post(url, headers=OLD, json=message("tools/list", 2)))
    assert [tool["name"] for tool in listed["tools"]] == [str(tool["name"]) for tool in DEFINITIONS]
    request = message("tools/call", 3, name="call_tool", arguments={"tool": "files__read_file"})
    called = result_of(await http.post(url, headers=OLD, json=request))
    assert called == {"content": [{"type": "text", "text": "called files__read_file"}], "isError": False}


async def test_a_session_of_an_earlier_gateway_does_not_lock_a_client_out(
    url: str, http: httpx2.AsyncClient
) -> None:
    headers = {**OLD, "Mcp-Session-Id": "0123456789abcdef"}
    assert len(result_of(await http.post(url, headers=headers, json=message("tools/list")))["tools"]) == 6


async def test_wrong_arguments_are_invalid_params_in_2025_06_18(url: str, http: httpx2.AsyncClient) -> None:
    request = message("tools/call", name="search_tools", arguments={"query": " "})
    refused = result_of(await http.post(url, headers=OLD, json=request))["error"]
    assert refused["code"] == -32602
    assert refused["message"] == "the query is blank. say in a few words what the tool should do"
    assert refused["data"]["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_to_open_and_no_session_to_end(
    url: str, http: httpx2.AsyncClient, method: str
) -> None:
    refused = await http.request(method, url, headers=OLD)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "localhost:1234", "Origin": "http://localhost:1234"}, 200),
        ({"Host": "[::1]:1234"}, 200),
    ],
)
async def test_only_pages_and_hosts_of_this_machine_are_accepted(
    url: str, http: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    answer = await http.post(url, headers={**OLD, **headers}, json=message("tools/list"))
    assert answer.status_code == status
