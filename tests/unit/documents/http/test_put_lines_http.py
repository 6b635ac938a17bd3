"""PUT /documents as lines of JSON, of any length in total."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest

from tests.unit.documents.http.builders import LINES, Client, Json, Parts, app_of, document
from tests.unit.gateway.runtime.serving import serving
from toolscript.core.errors import IndexUnavailable
from toolscript.documents.http import put as put_module
from toolscript.documents.http import upload_limits
from toolscript.documents.http.upload_limits import UploadTimeouts
from toolscript.documents.model.document import Document

pytestmark = pytest.mark.requirement("DOC-006")

SOON = 30.0


def line(data: object) -> bytes:
    return json.dumps(data).encode() + b"\n"


def lines(count: int, size: int = 0) -> list[bytes]:
    return [line(document(number, "word " * (size // 5))) for number in range(count)]


def head(more: str) -> bytes:
    default = f"Host: x\r\nAuthorization: Bearer token-of-acme\r\nContent-Type: {LINES}"
    return f"PUT /documents HTTP/1.1\r\n{default}\r\n{more}\r\n\r\n".encode()


def read(answer: httpx2.Response) -> tuple[list[Json], Json]:
    """Return the results, and the last line."""
    assert answer.headers["content-type"].startswith(LINES)
    *results, last = [json.loads(text) for text in answer.text.splitlines()]
    return results, last


async def test_every_line_has_a_result_and_the_last_line_of_the_response_has_the_counts(every_api: Client) -> None:
    results, last = read(await every_api.put_lines(b"".join(lines(130))))
    assert [result["doc_id"] for result in results] == [f"doc-{number}" for number in range(130)]
    assert results[7] == {"doc_id": "doc-7", "status": "created", "passages": 1, "line": 8}
    assert last == {"counts": {"created": 130, "updated": 0, "unchanged": 0, "refused": 0}}
    _, last = read(await every_api.put_lines(b"".join(lines(131))))
    assert last["counts"] == {"created": 1, "updated": 0, "unchanged": 130, "refused": 0}


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_lines_are_reassembled_however_the_body_is_split(api: Client, size: int) -> None:
    content = b"\xef\xbb\xbf" + b"\r\n\n".join(lines(20)) + b'{"id": "last", "text": "\xc3\xbc"}'

    async def cut() -> AsyncIterator[bytes]:
        for start in range(0, len(content), size):
            yield content[start : start + size]

    results, last = read(await api.put_lines(cut()))
    assert [result["doc_id"] for result in results][-2:] == ["doc-19", "last"]
    assert last["counts"]["created"] == 21
    assert (await api.ask("GET", "/documents/last")).json()["text"] == "ü"


async def test_a_bad_line_is_refused_alone_and_named(api: Client) -> None:
    bad = [b"{\n", b"\xff\xfe\n", b"[]\n", b'{"id": "x"}\n', b"[" * 99_999 + b"\n", b'{"id": "y", "text": NaN}\n']
    results, last = read(await api.put_lines(lines(1)[0] + b"\n\n" + b"".join(bad) + line(document(2))))
    assert [result["line"] for result in results] == [1, 4, 5, 6, 7, 8, 9, 10]
    assert [result["status"] for result in results] == ["created", *["refused"] * 6, "created"]
    assert [result["error"][:11] for result in results[1:4]] == ["is not JSON", "is not UTF-8"[:11], "a document "]
    assert last["counts"]["refused"] == 6


async def test_a_line_that_is_too_long_is_refused_and_not_kept(api: Client, parts: Parts) -> None:
    async def sent() -> AsyncIterator[bytes]:
        yield line(document(1)) + b'{"id": "long", "text": "'
        for _ in range(80):
            yield b"x" * 65_536
        yield b'"}\n' + line(document(2))

    results, _ = read(await api.put_lines(sent()))
    assert [result["status"] for result in results] == ["created", "refused", "created"]
    assert results[1] == {
        "doc_id": None,
        "status": "refused",
        "passages": 0,
        "error": "is longer than 4 MiB",
        "line": 2,
    }


@pytest.mark.parametrize("chunk", [500, 65_536, 3_000_000])
async def test_a_slow_engine_slows_the_client_and_memory_stays_bounded(
    api: Client, parts: Parts, chunk: int
) -> None:
    """At most a batch and a block are read from the client and not written yet."""
    content = b"".join(lines(400, 20_000))
    sent, ahead = [0], list[int]()
    written = [0]

    async def pull() -> AsyncIterator[bytes]:
        for start in range(0, len(content), chunk):
            sent[0] += len(content[start : start + chunk])
            yield content[start : start + chunk]

    async def slowly(batch: Sequence[Document]) -> None:
        ahead.append(sent[0] - written[0])
        for _ in range(50):
            await asyncio.sleep(0)
        assert sent[0] - written[0] == ahead[-1], "something was read meanwhile"
        written[0] += sum(len(document.text) for document in batch)

    parts.service.before, parts.service.forgets = slowly, True
    _, last = read(await api.put_lines(pull()))
    assert last["counts"]["created"] == 400
    assert len(ahead) > 5
    overhead = 400 * 100
    assert max(ahead) <= put_module.MAX_BATCH_BYTES + 20_100 + chunk + overhead


async def test_more_documents_than_a_request_allows_are_refused_in_the_last_line(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_module, "MAX_DOCUMENTS", 100)
    results, last = read(await api.put_lines(b"".join(lines(120))))
    assert len(results) == 100
    assert last["counts"]["created"] == 100
    assert last["error"]["details"]["line"] == 101
    assert "in another request" in last["error"]["details"]["hint"]
    results, last = read(await api.put_lines(b"".join(lines(100))))
    assert (len(results), set(last)) == (100, {"counts"})


async def test_the_size_of_the_results_is_bounded_too(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(put_module, "MAX_RESULT_BYTES", 10_000)
    long = [line({"id": f"{'x' * 400}{number}", "text": "x"}) for number in range(500)]
    results, last = read(await api.put_lines(b"".join(long)))
    assert 20 < len(results) < 200
    assert last["error"]["details"]["line"] == len(results) + 1


async def test_an_engine_failure_midway_keeps_what_was_written_and_is_reported(
    api: Client, parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_third(_: object) -> None:
        if len(parts.service.batches) == 3:
            raise IndexUnavailable("the index does not answer", hint="try again")

    parts.service.before = fail_third
    results, last = read(await api.put_lines(b"".join(lines(500))))
    assert len(results) == 128
    assert last["counts"]["created"] == 128
    assert last["error"] == {
        "code": "UNAVAILABLE",
        "message": "the index does not answer",
        "details": {"hint": "try again"},
    }
    assert len(parts.service.batches) == 3, "nothing was tried after it"
    assert [type(error) for error in parts.stopped] == [IndexUnavailable]
    (warned,) = [vars(record) for record in caplog.records if record.levelname == "WARNING"]
    expected = {"part": "documents", "reason": "IndexUnavailable", "done": 128}
    assert {name: warned[name] for name in expected} == expected


async def test_an_engine_that_fails_at_once_is_an_error_of_the_whole_request(api: Client, parts: Parts) -> None:
    async def fail(_: object) -> None:
        raise IndexUnavailable("the index does not answer")

    parts.service.before = fail
    answer = await api.put_lines(b"".join(lines(500)), 503)
    assert answer.json()["error"]["code"] == "UNAVAILABLE"
    assert len(parts.stopped) == 1


async def test_a_client_that_never_stops_sending_gets_its_response(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put_module, "MAX_DOCUMENTS", 2_000)
    parts.service.forgets = True
    long_ids = b"".join(line({"id": f"{'x' * 500}{number}", "text": "x"}) for number in range(1_000))
    async with serving(app_of(parts.routes())) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
        writer.write(head(f"Content-Length: {10**12}"))

        async def send_for_ever() -> None:
            while True:
                writer.write(long_ids)
                await writer.drain()

        sending = asyncio.create_task(send_for_ever())
        async with asyncio.timeout(SOON):
            response = await reader.readuntil(b'"line": 2001')
        sending.cancel()
        writer.close()
    assert response.count(b'"status":"created"') == 2_000


async def test_an_idle_client_times_out(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_limits, "DEFAULT_TIMEOUTS", UploadTimeouts(idle_seconds=0.05))

    async def silent() -> AsyncIterator[bytes]:
        yield b"".join(lines(65))
        await asyncio.Event().wait()

    results, last = read(await asyncio.wait_for(api.put_lines(silent()), SOON))
    assert len(results) == 64
    assert "nothing was sent for" in last["error"]["message"]


async def test_documents_written_before_a_client_disconnects_stay(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    wrote = asyncio.Event()

    async def note(_: object) -> None:
        wrote.set()

    parts.service.before = note
    async with serving(app_of(parts.routes())) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head("Content-Length: 99999999"))
        writer.write(b"".join(lines(65)))
        await asyncio.wait_for(wrote.wait(), SOON)
        writer.close()
        await writer.wait_closed()
        async with httpx2.AsyncClient(base_url=url, trust_env=False, verify=False) as client:
            headers = {"authorization": "Bearer token-of-acme"}
            assert (await client.get("/documents/doc-1", headers=headers)).status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_client_that_does_not_read_while_it_sends_gets_its_response(parts: Parts) -> None:
    """Request and response are larger than any buffer in between."""
    parts.service.forgets = True
    content = b"".join(line({"id": f"{'é' * 500}{number}", "text": "x " * 200}) for number in range(5_000))
    headers = {"authorization": "Bearer token-of-acme", "content-type": LINES}
    async with (
        serving(app_of(parts.routes())) as url,
        httpx2.AsyncClient(trust_env=False, verify=False, timeout=120) as client,
    ):
        answer = await client.put(f"{url}/documents", content=content, headers=headers)
    assert len(answer.content) > 5_000_000
    assert read(answer)[1]["counts"]["created"] == 5_000


async def test_the_line_cutter_holds_at_most_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    cutter = put_module.LineCutter(maximum=100)
    held = []
    for _ in range(50):
        list(cutter.cut(b"x" * 30))
        held.append(cutter.held)
    assert max(held) <= 100
    assert [(line.number, line.data) for line in cutter.cut(b"\nab\nc")] == [(1, None), (2, b"ab")]
    assert [(line.number, line.data) for line in cutter.last()] == [(3, b"c")]
