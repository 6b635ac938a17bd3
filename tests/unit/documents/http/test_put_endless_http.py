"""PUT /documents by clients that would keep the service busy, or waiting, without end."""

import asyncio
import gc
import gzip
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from tests.unit.documents.http.builders import Client, Parts, app_of
from tests.unit.documents.http.test_put_lines_http import SOON, head, lines, read
from tests.unit.gateway.runtime.serving import serving
from toolscript.documents.http import put as put_module
from toolscript.documents.http import upload_limits
from toolscript.documents.http.upload_limits import UploadTimeouts

pytestmark = [pytest.mark.requirement("DOC-006"), pytest.mark.slow]

# CPU time of this thread: other processes and the embedder do not count.
MAX_CPU_SECONDS = 0.5
BLANK = b"\n" * 6_000_000


async def turns_during(doing: Awaitable[object]) -> tuple[int, float]:
    """Return how often the event loop ran other tasks, and the longest CPU time between two turns."""
    turns, longest, task = 0, 0.0, asyncio.ensure_future(doing)
    while not task.done():
        before = time.thread_time()
        await asyncio.sleep(0)
        turns, longest = turns + 1, max(longest, time.thread_time() - before)
    await task
    return turns, longest


def packed_blank() -> bytes:
    """Blank lines compressed as much as is allowed."""
    blank = bytes(random.Random(1).choices(b" \t", k=400_000))
    return gzip.compress(blank + BLANK, 1)


async def blocks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 65_536):
        yield content[start : start + 65_536]


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the garbage of other tests out of the measured times."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.alone
@pytest.mark.usefixtures("uncollected")
async def test_no_body_blocks_the_event_loop(api: Client, parts: Parts) -> None:
    parts.service.forgets = True
    large = b'{"id": "a", "text": "x", "metadata": {"a": [' + b"1," * 1_000_000 + b"1]}}\n"
    # With the minimum number of turns: one for every batch, and for 500 lines.
    bodies: dict[str, tuple[Callable[[], Awaitable[object]], int]] = {
        "blank": (lambda: api.put_lines(BLANK, 422), 400),
        "blank in blocks": (lambda: api.put_lines(blocks(BLANK), 422), 400),
        "packed": (lambda: api.put_lines(packed_blank(), 422, "gzip"), 400),
        "no documents": (lambda: api.put_lines(b"1\n" * 49_000), 765),
        "documents": (lambda: api.put_lines(b"".join(lines(3_000))), 46),
        "a large line": (lambda: api.put_lines(large), 10),
        "JSON": (lambda: api.put(*[1] * 49_000), 765),
    }
    for name, (put, minimum) in bodies.items():
        turns, longest = await turns_during(put())
        assert turns >= minimum, name
        assert longest < MAX_CPU_SECONDS, name


async def test_blank_lines_count_as_lines(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_module, "MAX_LINES", 100)
    results, last = read(await api.put_lines(b"\n" * 90 + b"".join(lines(20))))
    assert [result["line"] for result in results] == list(range(91, 101))
    assert last["error"]["details"]["line"] == 101
    answer = await api.put_lines(b" \n" * 101, 422)
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"


async def test_an_endless_stream_of_blank_lines_is_stopped(api: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"\n" * 10_000

    answer = await asyncio.wait_for(api.put_lines(endless(), 422), SOON)
    assert "in 200,000 lines" in answer.json()["error"]["message"]


@pytest.mark.parametrize("packing", ["", "gzip"])
async def test_a_body_has_a_maximum_size_compressed_or_not(
    api: Client, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(put_module, "MAX_BYTES", 200_000)
    content = b"".join(lines(400, 2_000))
    sent = gzip.compress(content) if packing else content
    assert len(content) > 4 * 200_000
    results, last = read(await api.put_lines(blocks(sent), packing=packing))
    assert 0 < len(results) < 200
    assert "a request is at most" in last["error"]["message"]


@pytest.mark.parametrize(
    ("pace", "message"),
    [
        (UploadTimeouts(patience_seconds=0.2, min_bytes=1_000_000), "less than 1000000 bytes a second"),
        (UploadTimeouts(whole_seconds=0.3), "may take 0.3 seconds"),
    ],
    ids=["too slow", "too long"],
)
async def test_a_slow_or_endless_client_times_out(
    api: Client, monkeypatch: pytest.MonkeyPatch, pace: UploadTimeouts, message: str
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", pace)

    async def dripping() -> AsyncIterator[bytes]:
        yield b"".join(lines(65))
        while True:
            await asyncio.sleep(0.01)
            yield b" "

    results, last = read(await asyncio.wait_for(api.put_lines(dripping()), SOON))
    assert len(results) == 64
    assert message in last["error"]["message"]


async def test_delays_of_the_server_do_not_count_against_the_client(
    api: Client, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", UploadTimeouts(patience_seconds=0.2, min_bytes=10**9))

    async def slowly(_: object) -> None:
        await asyncio.sleep(0.1)

    parts.service.before, parts.service.forgets = slowly, True
    _, last = read(await api.put_lines(blocks(b"".join(lines(400)))))
    assert last == {"counts": {"created": 400, "updated": 0, "unchanged": 0, "refused": 0}}


@pytest.mark.parametrize("before", [b"", b"".join(lines(65))], ids=["nothing", "documents"])
async def test_a_client_that_times_out_gets_a_response_and_is_disconnected(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", UploadTimeouts(idle_seconds=0.05))
    async with serving(app_of(parts.routes())) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head("Content-Length: 99999999") + before)
        response = await asyncio.wait_for(reader.read(-1), SOON)
        writer.close()
    assert b"connection: close" in response.lower()
    assert b"nothing was sent for" in response
    assert response.count(b'"created","passages"') == (64 if before else 0)
