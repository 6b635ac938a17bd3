"""A real `serve` at its concurrency limit: the cost of a refusal."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2
import pytest

from benchmarks.search import Child
from tests.conftest import Installation
from tests.e2e.served import Served, served
from tests.support.faults import Fault, Relay, relay

REFUSALS = 2_000
MAX_CPU_SECONDS = 0.001
BUCKET = re.compile(r'admission_refusal_seconds_bucket\{kind="read",le="([^"]+)"\} ([0-9.e+]+)')
NOBODY_WAITS = {"toolscript.server.wiring.MAX_QUEUE_SECONDS": 0, "toolscript.server.wiring.BURST": 0}
BODY = {"query": "create pull request"}


@pytest.fixture
async def full(installed: Installation) -> AsyncIterator[Served]:
    """A server with one concurrent search, which waits for an embedding that never arrives."""
    endpoint = urlsplit(installed.settings.embedding_url)
    async with relay("127.0.0.1", endpoint.port or 0) as to_endpoint:
        extra = {
            "TOOLSCRIPT_EMBEDDING_URL": f"http://127.0.0.1:{to_endpoint.port}/v1",
            "TOOLSCRIPT_MAX_CONCURRENT_SEARCHES": "1",
            "TOOLSCRIPT_DEADLINE_SECONDS": "300",
            "TOOLSCRIPT_SHUTDOWN_SECONDS": "1",
            "TOOLSCRIPT_METRICS": "true",
            # Metrics are for administrators.
            "TOOLSCRIPT_ENVIRONMENT": "development",
        }
        opening = served({**installed.environment, **extra}, constants=NOBODY_WAITS)
        server = await asyncio.to_thread(opening.__enter__)
        try:
            async with asyncio.timeout(120):
                hanging = await _hanging(server, to_endpoint)
            with hanging:
                yield server
        finally:
            await asyncio.to_thread(opening.__exit__, None, None, None)


async def _hanging(server: Served, to_endpoint: Relay) -> socket.socket:
    """Send a search that hangs as long as this connection is open."""
    await to_endpoint.fail(Fault.HANGING)
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    body = b'{"query": "a task"}'
    hanging = await asyncio.to_thread(server.send, head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    async with client(server) as asking:
        while (await asking.post("/api/v1/search", json=BODY)).status_code != 503:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return hanging


def client(server: Served) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}", trust_env=False, verify=False, timeout=60
    )


@pytest.mark.alone
@pytest.mark.requirement("API-004", "OP-006")
async def test_a_refusal_takes_less_than_ten_milliseconds_and_one_of_cpu_time(
    full: Served,
) -> None:
    child = Child(full.process.pid, full.port)
    spent = child.cpu_seconds()
    await asyncio.gather(*(_refused(full, REFUSALS // 4) for _ in range(4)))
    assert (child.cpu_seconds() - spent) / REFUSALS <= MAX_CPU_SECONDS
    async with client(full) as asking:
        assert (await asking.get("/livez")).status_code == 200
        page = (await asking.get("/metrics")).text
    buckets = {edge: float(count) for edge, count in BUCKET.findall(page)}
    assert buckets["+Inf"] >= REFUSALS
    assert buckets["0.01"] >= 0.95 * buckets["+Inf"]


async def _refused(server: Served, count: int) -> None:
    """On one connection that stays open: a refusal does not end it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    body = b'{"query": "create pull request"}'
    head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    for _ in range(count):
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        output = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert output.startswith(b"http/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in output
        length = re.search(rb"content-length: (\d+)", output)
        assert length is not None
        assert b'"UNAVAILABLE"' in await reader.readexactly(int(length[1]))
    writer.close()
