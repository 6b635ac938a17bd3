"""The log of a service: tenant, client and size of each request, and searches of the library."""

from typing import Any

import pytest

from tests.unit.server.composition.observed_app import put_two, watched
from tests.unit.server.composition.observed_products import TOKEN, served, some_products
from tests.unit.server.http.captured_logs import lines, logged
from tests.unit.server.metrics.otlp_receiver import otlp_receiver

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.slow]

QUESTION = "where does the secretmarker hive stand"


def events(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [item for item in found if item["event"] == name]


async def test_the_access_log_has_tenant_client_and_bytes_and_no_token() -> None:
    with logged("info") as output:
        async with served(await some_products(), {}) as there:
            public = await there.ask()
            existing = await there.http.post(
                "/search_knowledge", json={"query": "hive"}, headers={"authorization": f"Bearer {TOKEN}"}
            )
            over_mcp = await there.mcp.call(
                "search_tools", {"query": "read a file"}, {"authorization": f"Bearer {TOKEN}"}
            )
    first, second, third = events(lines(output), "request")
    assert "tenant" not in first
    assert second["tenant"] == third["tenant"] == "ann"
    assert {first["client"], second["client"], third["client"]} == {"203.0.113.7"}
    sizes = [len(item.content) for item in (public, existing, over_mcp)]
    assert [item["response_bytes"] for item in (first, second, third)] == sizes
    assert third["path"] == "/mcp"
    assert TOKEN not in output.getvalue()


async def test_a_request_for_documents_is_logged_with_its_tenant_even_when_it_is_refused() -> None:
    with logged("info") as output:
        async with watched({}) as client:
            await put_two(client)
            refused = await client.post("/search", json={"query": "keys"}, headers={"authorization": "Bearer bad"})
            assert refused.status_code == 401
    put, search = events(lines(output), "request")
    assert put["tenant"] == "ann"
    assert "tenant" not in search
    assert search["response_bytes"] == len(refused.content)


async def test_the_protocols_own_sessions_are_not_logged() -> None:
    with logged("info") as output:
        async with served(await some_products(), {}) as there:
            await there.mcp.names()
            await there.mcp.answer("search_tools", {"query": "read a file"})
    assert "session" not in output.getvalue()
    assert len(events(lines(output), "request")) == 2


async def test_a_search_of_the_library_is_logged_when_it_begins_and_when_it_ends() -> None:
    with logged("info") as output:
        async with served(await some_products(), {"log_queries": True}) as there:
            answer = await there.ask(QUESTION)
    result = lines(output)
    (start,), (complete,) = events(result, "search_knowledge_start"), events(result, "search_knowledge_complete")
    assert start["query"] == complete["query"] == QUESTION
    assert complete["result_count"] == len(answer.json()["results"]) > 0
    assert 0 < complete["latency_ms"] < 60_000
    assert start["request_id"] == complete["request_id"] == answer.headers["x-request-id"]
    assert result.index(start) < result.index(complete)


async def test_queries_are_logged_only_with_the_setting() -> None:
    with otlp_receiver() as receiver, logged("debug") as output:
        async with served(await some_products(), {"otlp_endpoint": receiver.url}) as there:
            await there.ask(QUESTION)
            await there.mcp.answer("search_knowledge", {"query": QUESTION})
            await there.find_tools(QUESTION)
    result = lines(output)
    assert [event["query"] for event in events(result, "search_knowledge_start")] == ["...", "..."]
    assert [event["query"] for event in events(result, "search_knowledge_complete")] == ["...", "..."]
    assert "secretmarker" not in output.getvalue()
