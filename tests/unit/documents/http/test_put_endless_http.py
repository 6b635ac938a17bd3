"""PUT /documents by senders that would keep the service busy, or waiting, for ever."""

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

# Of this thread: what others do on the same machine, or what embeds beside it, is no part of it.
MAX_CPU_SECONDS = 0.5
BLANK = b"\n" * 6_000_000


async def turns_during(doing: Awaitable[object]) -> tuple[int, float]:
    """How many turns others had, and how long they waited for one at worst."""
    turns, longest, asked = 0, 0.0, asyncio.ensure_future(doing)
    while not asked.done():
        before = time.thread_time()
        await asyncio.sleep(0)
        turns, longest = turns + 1, max(longest, time.thread_time() - before)
    await asked
    return turns, longest


def packed_blank() -> bytes:
    """Packed as well as is allowed, and not better."""
    blank = bytes(random.Random(1).choices(b" \t", k=400_000))
    return gzip.compress(blank + BLANK, 1)


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 65_536):
        yield content[at : at + 65_536]


@pytest.fixture
def uncollected() -> Iterator[None]:
    """What thousands of other tests have left is not looked through while a turn is timed."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.alone
@pytest.mark.usefixtures("uncollected")
async def test_others_have_their_turn_whatever_is_sent(api: Client, parts: Parts) -> None:
    parts.service.forgets = True
    large = b'{"id": "a", "text": "x", "metadata": {"a": [' + b"1," * 1_000_000 + b"1]}}\n"
    # And how many turns there are at least: one for every batch, and for 500 lines.
    bodies: dict[str, tuple[Callable[[], Awaitable[object]], int]] = {
        "blank": (lambda: api.put_lines(BLANK, 422), 400),
        "blank in pieces": (lambda: api.put_lines(pieces(BLANK), 422), 400),
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


async def test_blank_lines_are_lines_too(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_module, "MAX_LINES", 100)
    results, last = read(await api.put_lines(b"\n" * 90 + b"".join(lines(20))))
    assert [one["line"] for one in results] == list(range(91, 101))
    assert last["error"]["details"]["line"] == 101
    answer = await api.put_lines(b" \n" * 101, 422)
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"


async def test_blank_lines_without_end_come_to_an_end(api: Client) -> None:
    async def for_ever() -> AsyncIterator[bytes]:
        while True:
            yield b"\n" * 10_000

    answer = await asyncio.wait_for(api.put_lines(for_ever(), 422), SOON)
    assert "in 200,000 lines" in answer.json()["error"]["message"]


@pytest.mark.parametrize("packing", ["", "gzip"])
async def test_a_body_has_at_most_so_many_bytes_packed_or_not(
    api: Client, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(put_module, "MAX_BYTES", 200_000)
    content = b"".join(lines(400, 2_000))
    sent = gzip.compress(content) if packing else content
    assert len(content) > 4 * 200_000
    results, last = read(await api.put_lines(pieces(sent), packing=packing))
    assert 0 < len(results) < 200
    assert "a request is at most" in last["error"]["message"]


@pytest.mark.parametrize(
    ("pace", "said"),
    [
        (UploadTimeouts(patience_seconds=0.2, min_bytes=1_000_000), "less than 1000000 bytes a second"),
        (UploadTimeouts(whole_seconds=0.3), "may take 0.3 seconds"),
    ],
    ids=["too slow", "too long"],
)
async def test_a_sender_that_is_never_silent_and_never_done_is_not_waited_for(
    api: Client, monkeypatch: pytest.MonkeyPatch, pace: UploadTimeouts, said: str
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", pace)

    async def dripping() -> AsyncIterator[bytes]:
        yield b"".join(lines(65))
        while True:
            await asyncio.sleep(0.01)
            yield b" "

    results, last = read(await asyncio.wait_for(api.put_lines(dripping()), SOON))
    assert len(results) == 64
    assert said in last["error"]["message"]


async def test_how_slow_we_are_is_not_held_against_the_sender(
    api: Client, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", UploadTimeouts(patience_seconds=0.2, min_bytes=10**9))

    async def slowly(_: object) -> None:
        await asyncio.sleep(0.1)

    parts.service.before, parts.service.forgets = slowly, True
    _, last = read(await api.put_lines(pieces(b"".join(lines(400)))))
    assert last == {"counts": {"created": 400, "updated": 0, "unchanged": 0, "refused": 0}}


@pytest.mark.parametrize("before", [b"", b"".join(lines(65))], ids=["nothing", "documents"])
async def test_whoever_is_given_up_on_is_answered_and_hung_up_on(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", UploadTimeouts(idle_seconds=0.05))
    async with serving(app_of(parts.routes())) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head("Content-Length: 99999999") + before)
        said = await asyncio.wait_for(reader.read(-1), SOON)
        writer.close()
    assert b"connection: close" in said.lower()
    assert b"nothing was sent for" in said
    assert said.count(b'"created","passages"') == (64 if before else 0)
