"""Searches whose hits come one by one, over a real connection where that matters."""

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
    """What a whole answer says of the same search."""
    async with connected(parts) as client:
        await client.put("/documents", json={"documents": [document(number) for number in range(5)]})
        return dict((await client.post("/search", json=QUERY)).json())


def events(text: str) -> list[tuple[str, Json]]:
    found = []
    for event in text.removesuffix("\n\n").split("\n\n"):
        kind, data = event.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


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


async def test_the_same_as_events(parts: Parts) -> None:
    whole = await filled(parts)
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": EVENTS})
    assert answer.headers["content-type"].startswith(EVENTS)
    *hits, (kind, end) = events(answer.text)
    assert hits == [("hit", hit) for hit in whole["hits"]]
    assert (kind, without_times(end)) == ("end", without_times(whole))


async def test_which_form_it_is_depends_on_a_header_and_caches_are_told(api: Client) -> None:
    for accept in ("application/json", LINES, EVENTS):
        answer = await api.ask("POST", "/search", 200, {"query": "x"}, accept=accept)
        assert answer.headers["vary"] == "Accept"
        assert answer.headers["content-type"].startswith(accept)


async def test_what_a_stream_says_of_a_budget_is_in_its_headers(parts: Parts) -> None:
    async with connected(parts) as client:
        headers = {"accept": LINES, "authorization": "Bearer token-of-limited"}
        answer = await client.post("/search", json=QUERY, headers=headers)
    assert answer.headers["ratelimit-remaining"] == "2"
    assert "content-length" not in answer.headers


async def test_headers_come_before_the_search_is_done(parts: Parts) -> None:
    may_go_on = asyncio.Event()

    async def wait() -> None:
        await may_go_on.wait()

    parts.search.before = wait
    async with connected(parts) as client:
        async with asyncio.timeout(SOON):
            async with client.stream("POST", "/search", json=QUERY, headers={"accept": LINES}) as answer:
                assert (answer.status_code, parts.searched) == (200, [])
                may_go_on.set()
                assert json.loads((await answer.aread()).splitlines()[-1])["total"] == 0


@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_what_goes_wrong_after_the_headers_is_the_last_thing_said(parts: Parts, accept: str) -> None:
    async def fail() -> None:
        raise IndexUnavailable("the index does not answer", hint="see /readyz")

    parts.search.before = fail
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": accept})
    said = [("error", json.loads(answer.text))] if accept == LINES else events(answer.text)
    told = {"code": "UNAVAILABLE", "message": "the index does not answer", "details": {"hint": "see /readyz"}}
    assert (answer.status_code, said) == (200, [("error", {"error": told})])


async def test_a_fault_of_ours_is_told_without_what_it_was(parts: Parts) -> None:
    async def fail() -> None:
        raise RuntimeError("secret of the machine")

    parts.search.before = fail
    async with connected(parts) as client:
        answer = await client.post("/search", json=QUERY, headers={"accept": LINES})
    assert json.loads(answer.text)["error"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in answer.text


async def test_what_cannot_be_understood_is_refused_before_anything_is_streamed(api: Client) -> None:
    await api.ask("POST", "/search", 422, {"query": "x", "top_k": 0}, accept=LINES)
    await api.ask("POST", "/search", 400, {"query": ""}, accept=EVENTS)


@pytest.mark.parametrize("accept", [LINES, EVENTS])
async def test_whoever_hangs_up_ends_the_search(parts: Parts, accept: str) -> None:
    ended = asyncio.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    parts.search.before = for_ever
    async with connected(parts) as client:
        async with client.stream("POST", "/search", json=QUERY, headers={"accept": accept}) as answer:
            assert answer.status_code == 200
        await asyncio.wait_for(ended.wait(), SOON)
    assert parts.searched == []
