"""Metrics of a server in several processes: any process reports for all."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.reserved_ports import reserved_port
from tests.unit.server.composition.observed_app import TOKEN
from tests.unit.server.metrics.metrics_page import shown, value

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.slow]

ROOT = Path(__file__).parents[4]
SOON = 60.0
SEARCHES = 40


@contextmanager
def two_processes() -> Iterator[tuple[str, Path]]:
    """Yield the address, and the shared folder."""
    with reserved_port() as port:
        command = [sys.executable, "-m", "tests.unit.server.composition.serve_metrics", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            folder = Path(server.stdout.readline().strip())
            _until_ready(server, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}", folder
        finally:
            server.terminate()
            server.wait(SOON)
            if server.stdout is not None:
                server.stdout.close()


def _until_ready(server: "subprocess.Popen[str]", url: str) -> None:
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        assert server.poll() is None, "it ended"
        try:
            asked(url, "GET", "/livez")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("it did not listen in time")


def asked(url: str, *requests: str) -> list[bytes]:
    """Return responses to methods and paths, all on one new connection; the system picks the process."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=SOON)
    try:
        return [_answer(connection, *item) for item in zip(requests[::2], requests[1::2], strict=True)]
    finally:
        connection.close()


def _answer(connection: HTTPConnection, method: str, path: str) -> bytes:
    body = b'{"query": "a"}' if method == "POST" else None
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    read = answer.read()
    assert answer.status == 200, read
    return read


def search_in_both(url: str) -> int:
    """Return the number of searches."""
    ends_at, heard, count = time.monotonic() + SOON, set[bytes](), 0
    while (len(heard) < 2 or count < SEARCHES) and time.monotonic() < ends_at:
        heard.add(asked(url, "GET", "/pid", "POST", "/search")[0])
        count += 1
    assert len(heard) == 2, "only one process was ever asked"
    return count


def test_every_process_reports_the_metrics_of_all() -> None:
    with two_processes() as (url, folder):
        searches = search_in_both(url)
        assert len({file.stem.rpartition("_")[2] for file in folder.glob("*.db")}) == 2
        pages = [asked(url, "GET", "/metrics")[0] for _ in range(20)]
        for page in pages:
            assert value(page, "toolscript_searches_total", outcome="empty") == searches
            assert value(page, "toolscript_search_seconds_count", product="documents") == searches
        assert not any("pid" in dict(labels) for _, labels in shown(pages[0]))
    assert not folder.exists()
