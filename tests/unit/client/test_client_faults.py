"""What docs/python.md says of faults, with real sockets: busy, slow and dying servers, lists that change."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.unit.client.both_clients import METHODS, Ask, ask_async, ask_sync, raw_server
from tests.unit.gateway.runtime.serving import serving
from toolscript.client.clients import AsyncClient
from toolscript.client.exchange import Pause
from toolscript.core.errors import TooManyRequests, Unavailable, envelope

pytestmark = [pytest.mark.requirement("AP-002"), pytest.mark.slow]

Handle = Callable[[Request], Awaitable[Response]]
NOTHING = json.dumps({"results": [], "next_cursor": None})


@pytest.fixture(params=[ask_sync, ask_async])
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


def app_of(handle: Handle) -> Starlette:
    return Starlette(routes=[Route("/{path:path}", handle, methods=METHODS)])


def busy(status: int, retry_after: str | None) -> Response:
    code = "RATE_LIMITED" if status == 429 else "UNAVAILABLE"
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Response(json.dumps(envelope(code, "too much")), status, headers)


class Busy:
    """Refuses the first requests, then answers; it remembers when each came."""

    def __init__(self, status: int, retry_after: str | None, refusals: int) -> None:
        self._refusal = (status, retry_after)
        self._refusals = refusals
        self.times: list[float] = []

    async def handle(self, _: Request) -> Response:
        self.times.append(time.monotonic())
        return busy(*self._refusal) if len(self.times) <= self._refusals else Response(NOTHING)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again_when_it_says(status: int, ask: Ask) -> None:
    server, pauses = Busy(status, "1", 2), list[Pause]()
    async with serving(app_of(server.handle)) as url:
        assert await ask(url, "skills.list", options={"retries": 2, "on_retry": pauses.append}) == []
    assert [pause.seconds for pause in pauses] == [1, 1]
    waits = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    assert all(wait >= 1 for wait in waits)


@pytest.mark.parametrize("status", [429, 503])
async def test_the_tries_are_bounded(status: int, ask: Ask) -> None:
    server = Busy(status, "0", 99)
    async with serving(app_of(server.handle)) as url:
        with pytest.raises((TooManyRequests, Unavailable), match="too much") as refused:
            await ask(url, "skills.list", options={"retries": 3})
    assert len(server.times) == 4
    assert refused.value.details["retry_after_seconds"] == 0


async def test_a_wait_longer_than_allowed_is_left_to_the_caller(ask: Ask) -> None:
    server = Busy(429, "3600", 99)
    async with serving(app_of(server.handle)) as url:
        with pytest.raises(TooManyRequests) as refused:
            await ask(url, "skills.list", options={"retries": 9, "max_wait": 60})
    assert (len(server.times), refused.value.details["retry_after_seconds"]) == (1, 3600)


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("tools.call", ["files__write", {}]),
        ("jobs.start_sync", []),
        ("skills.add", [{"id": "a", "name": "A"}]),
        ("sources.delete", ["a"]),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_what_may_not_happen_twice_is_never_repeated(
    path: str, arguments: list[Any], status: int, ask: Ask
) -> None:
    server = Busy(status, "0", 99)
    async with serving(app_of(server.handle)) as url:
        with pytest.raises((TooManyRequests, Unavailable)):
            await ask(url, path, *arguments, options={"retries": 9})
    assert len(server.times) == 1


@pytest.mark.parametrize("begins", [False, True], ids=["no answer", "half an answer"])
async def test_a_stream_that_stops_is_waited_for_no_longer_than_the_timeout(begins: bool, ask: Ask) -> None:
    async def stall(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if begins:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + NOTHING[:9].encode())
            await writer.drain()
        await stopped.wait()

    stopped = asyncio.Event()
    async with raw_server(stall) as url:
        began = time.monotonic()
        with pytest.raises(Unavailable, match="timed out") as refused:
            await ask(url, "skills.list", options={"timeout": 0.3})
        took = time.monotonic() - began
        stopped.set()
    assert 0.3 <= took < 5
    assert "`timeout` gives it longer" in refused.value.hint


async def test_a_slow_stream_that_goes_on_is_read_to_its_end(ask: Ask) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(NOTHING))
        for char in NOTHING.encode():
            writer.write(bytes([char]))
            await writer.drain()
            await asyncio.sleep(0.02)

    async with raw_server(trickle) as url:
        # The whole takes longer than the timeout, but no single wait does.
        assert await ask(url, "skills.list", options={"timeout": 0.3}) == []


class Pile:
    """A list in order of its numbers, of which pages are asked after a cursor; entries come and go meanwhile."""

    def __init__(self, change: Callable[[set[int]], None]) -> None:
        self.entries = set(range(0, 20, 2))
        self._change = change

    async def handle(self, request: Request) -> Response:
        after = int(request.query_params.get("cursor", "-1"))
        limit = int(request.query_params["limit"])
        following = sorted(entry for entry in self.entries if entry > after)
        page = following[:limit]
        self._change(self.entries)
        return Response(
            json.dumps(
                {
                    "results": [{"name": str(n), "namespace": "", "tool_count": n, "synced_at": ""} for n in page],
                    "next_cursor": str(page[-1]) if len(following) > limit else None,
                }
            )
        )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda entries: entries.discard(min(entries)), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]),
        (lambda entries: entries.discard(max(entries)), [0, 2, 4, 6, 8, 10, 12, 14]),
        (lambda entries: entries.add(1), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]),
    ],
    ids=["the first vanish", "the last vanish", "one comes before"],
)
async def test_a_list_that_changes_between_pages_repeats_and_hides_nothing(
    change: Callable[[set[int]], None], expected: list[int], ask: Ask
) -> None:
    async with serving(app_of(Pile(change).handle)) as url:
        entries = await ask(url, "sources.list", page_size=3)
    assert [entry.tool_count for entry in entries] == expected


class Dying:
    """Accepts puts; while `deaths` are left, it cuts the connection in the middle of a request or answer."""

    def __init__(self, deaths: int, *, in_answer: bool) -> None:
        self.deaths = deaths
        self.stored: dict[str, str] = {}
        self.requests = 0
        self._in_answer = in_answer

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        self.requests += 1
        if self.deaths > 0 and not self._in_answer:
            self.deaths -= 1
            await reader.readexactly(size // 2)
            return
        documents = [json.loads(line) for line in (await reader.readexactly(size)).splitlines()]
        self.stored |= {document["id"]: document["text"] for document in documents}
        results = [
            {"id": document["id"], "state": "created", "chunk_count": 1, "line": number}
            for number, document in enumerate(documents, 1)
        ]
        body = "".join(json.dumps(line) + "\n" for line in [*results, {"counts": {}}]).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        if self.deaths > 0:
            self.deaths -= 1
            body = body[: len(body) // 2]
        writer.write(body)
        await writer.drain()


def documents(count: int) -> Iterator[dict[str, str]]:
    return ({"id": f"d{number}", "text": f"Number {number}."} for number in range(count))


@pytest.mark.parametrize("in_answer", [False, True], ids=["killed in the request", "killed in the answer"])
async def test_a_server_killed_in_mid_put_gets_the_documents_again(in_answer: bool, ask: Ask) -> None:
    server, pauses = Dying(2, in_answer=in_answer), list[Pause]()
    async with raw_server(server.answer) as url:
        options = {"retries": 2, "on_retry": pauses.append}
        answer = await ask(url, "documents.put", documents(450), options=options)
    assert server.stored == {document["id"]: document["text"] for document in documents(450)}
    assert [result.id for result in answer.results] == [document["id"] for document in documents(450)]
    assert (answer.counts.created, server.requests, len(pauses)) == (450, 5, 2)


async def test_a_server_that_stays_dead_ends_the_put(ask: Ask) -> None:
    server = Dying(99, in_answer=False)
    async with raw_server(server.answer) as url:
        with pytest.raises(Unavailable, match="does not answer"):
            await ask(url, "documents.put", documents(3), options={"retries": 1})
    assert (server.requests, server.stored) == (2, {})


async def test_documents_are_taken_from_the_iterable_as_they_are_sent(ask: Ask) -> None:
    server = Dying(0, in_answer=False)

    def counted() -> Iterator[dict[str, str]]:
        for number, document in enumerate(documents(1_000)):
            assert number - len(server.stored) <= 200
            yield document

    async with raw_server(server.answer) as url:
        assert (await ask(url, "documents.put", counted())).counts.created == 1_000
    assert server.requests == 5


async def test_an_async_client_puts_from_an_asynchronous_iterable() -> None:
    async def slowly() -> AsyncIterator[dict[str, str]]:
        for document in documents(3):
            await asyncio.sleep(0)
            yield document

    server = Dying(0, in_answer=False)
    async with raw_server(server.answer) as url, AsyncClient(url) as client:
        answer = await client.documents.put(slowly())
    assert [result.id for result in answer.results] == ["d0", "d1", "d2"]


async def test_a_cancelled_request_ends_at_once() -> None:
    reached, stopped = asyncio.Event(), asyncio.Event()

    async def stall(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await stopped.wait()

    async with raw_server(stall) as url:
        async with AsyncClient(url) as client:
            asking = asyncio.create_task(client.tools.search("x"))
            await reached.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        stopped.set()
