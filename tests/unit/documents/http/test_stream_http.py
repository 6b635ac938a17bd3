"""Streamed searches, over a real connection where that matters."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest

from tests.unit.documents.http.builders import Client, Json, Parts, app_of, document
from tests.unit.gateway.runtime.serving import serving
from toolscript.core.errors import IndexUnavailable

pytestmark = pytest.mark.requirement("DOC-007")

LINES, EVENTS = "application/x-ndjson", "text/event-stream"
QUERY = {"query": "number", "top_k": 3}
SOON = 20.0


@asynccontextmanager
async def connected(parts: Parts) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"authorization": "Bearer token-of-acme"}
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(app_of(parts.routes())))
        client = httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, verify=False, timeout=SOON)
        yield await stack.enter_async_context(client)


async def filled(parts: Parts) -> Json:
    """Store documents; return the plain JSON response of the same search."""
    async with connected(parts) as client:
        await client.put("/documents", json={"documents": [document(number) for number in range(5)]})
        return dict((await client.post("/search", json=QUERY)).json())


def events(text: str) -> list[tuple[str, Json]]:
    parsed = []
    for event in text.removesuffix("\n\n").split("\n\n"):
        kind, data = event.split("\n")
        parsed.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed


def without_times(answer: Json) -> Json:
    return {name: value for name, value in answer.items() if name not in ("query_id", "took_ms", "hits")}


async def test_a_line_for_every_hit_and_a_last_one_with_the_rest(parts: Parts) -> None:
    whole = await filled(parts)
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": LINES})
    assert answer.headers["content-type"].startswith(LINES)
    *hits, end = [json.loads(line) for line in answer.text.splitlines()]
    assert hits == whole["hits"]
    assert without_times(end) == without_times(whole)
    assert end.keys() == whole.keys() - {"hits"}


async def test_events_carry_the_same_results(parts: Parts) -> None:
    whole = await filled(parts)
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": EVENTS})
    assert answer.headers["content-type"].startswith(EVENTS)
    *hits, (kind, end) = events(answer.text)
    assert hits == [("hit", hit) for hit in whole["hits"]]
    assert (kind, without_times(end)) == ("end", without_times(whole))


async def test_the_accept_header_selects_the_media_type_and_responses_vary_on_it(api: Client) -> None:
    for accept in ("application/json", LINES, EVENTS):
        answer = await api.ask("POST", "/search", 200, {"query": "x"}, accept=accept)
        assert answer.headers["vary"] == "Accept"
        assert answer.headers["content-type"].startswith(accept)


async def test_a_stream_has_rate_limit_headers(parts: Parts) -> None:
    async with connected(parts) as client:
        headers = {"accept": LINES, "authorization": "Bearer token-of-limited"}
        answer = await client.post("/search", json=QUERY, headers=headers)
    assert answer.headers["ratelimit-remaining"] == "2"
    assert "content-length" not in answer.headers


async def test_headers_come_before_the_search_is_done(parts: Parts) -> None:
    may_continue = asyncio.Event()

    async def wait() -> None:
        await may_continue.wait()

    parts.search.before = wait
    async with connected(parts) as client:
        async with asyncio.timeout(SOON):
            async with client.stream("POST", "/search", json=QUERY, headers={"accept": LINES}) as answer:
                assert (answer.status_code, parts.searched) == (200, [])
                may_continue.set()
                assert json.loads((await answer.aread()).splitlines()[-1])["total"] == 0


@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_an_error_after_the_headers_is_the_last_line_or_event(parts: Parts, accept: str) -> None:
    async def fail() -> None:
        raise IndexUnavailable("the index does not answer", hint="see /readyz")

    parts.search.before = fail
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": accept})
    received = [("error", json.loads(answer.text))] if accept == LINES else events(answer.text)
    error = {"code": "UNAVAILABLE", "message": "the index does not answer", "details": {"hint": "see /readyz"}}
    assert (answer.status_code, received) == (200, [("error", {"error": error})])


async def test_an_internal_error_reveals_no_details(parts: Parts) -> None:
    async def fail() -> None:
        raise RuntimeError("secret of the machine")

    parts.search.before = fail
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": LINES})
    assert json.loads(answer.text)["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in answer.text


async def test_an_invalid_request_is_refused_before_the_stream_starts(api: Client) -> None:
    await api.ask("POST", "/search", 422, {"query": "x", "top_k": 0}, accept=LINES)
    await api.ask("POST", "/search", 400, {"query": ""}, accept=EVENTS)


@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_a_client_that_disconnects_cancels_the_search(parts: Parts, accept: str) -> None:
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    parts.search.before = hang
    async with connected(parts) as client:
        async with client.stream("POST", "/search", json=QUERY, headers={"accept": accept}) as answer:
            assert answer.status_code == 200
        await asyncio.wait_for(ended.wait(), SOON)
    assert parts.searched == []
