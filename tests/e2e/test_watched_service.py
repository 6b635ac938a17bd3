"""`serve` in two processes with all observability on: each request is recorded once, by whichever process."""

import json
import time
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e.commands import run_here, serving
from tests.unit.server.metrics.metrics_page import value
from tests.unit.server.metrics.otlp_receiver import otlp_receiver
from toolscript import __version__

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.requirement("DOC-007")]

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = {"x-debug-bypass-auth": "1", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
SEARCHES = 8


def ask(url: str, method: str, path: str, body: object = None) -> httpx2.Response:
    """Send each request on a new connection: either process may take it."""
    answer = httpx2.request(
        method, f"{url}{path}", json=body, headers=CALLER, trust_env=False, verify=False, timeout=60.0
    )
    assert answer.status_code == 200, answer.text
    return answer


def until_counted(url: str) -> None:
    """Wait until the sampled metrics show the item."""
    ends_at = time.monotonic() + 60.0
    while time.monotonic() < ends_at:
        if value(ask(url, "GET", "/metrics").content, "toolscript_index_items") == 1:
            return
        time.sleep(0.2)
    raise AssertionError("the stores were not looked at in time")


@pytest.fixture
def filled(installation: Installation, tmp_path: Path) -> Installation:
    file = tmp_path / "items.jsonl"
    file.write_text('{"server": "disk", "name": "read_file", "description": "Read a file"}\n')
    run_here(installation.environment, "sync", str(file))
    run_here(installation.environment, "worker", "--drain")
    return installation


def test_searches_of_two_processes_are_traced_counted_and_noted(filled: Installation, tmp_path: Path) -> None:
    log = tmp_path / "queries.ndjson"
    with otlp_receiver() as receiver:
        watched = {
            **filled.environment,
            "TOOLSCRIPT_PROCESSES": "2",
            "TOOLSCRIPT_ENVIRONMENT": "development",
            "TOOLSCRIPT_DEBUG_BYPASS_AUTH": "true",
            "TOOLSCRIPT_METRICS": "true",
            "TOOLSCRIPT_OTLP_ENDPOINT": receiver.url,
            "TOOLSCRIPT_QUERY_LOG": str(log),
        }
        with serving(watched) as url:
            document = {"id": "doc-1", "text": "Keys lie under the mat."}
            ask(url, "PUT", "/documents", {"documents": [document]})
            ids = [ask(url, "POST", "/search", {"query": "keys"}).json()["query_id"] for _ in range(SEARCHES)]
            for _ in range(SEARCHES):
                assert ask(url, "POST", "/api/v1/search", {"query": "read a file"}).json()["tools"]
            until_counted(url)
            pages = [ask(url, "GET", "/metrics").content for _ in range(6)]
        spans = receiver.spans
    searches = [item for item in spans if item.name == "search.execute" and item.facts["product"] == "documents"]
    for page in pages:
        assert value(page, "toolscript_searches_total", product="documents", outcome="ok") == SEARCHES
        assert value(page, "toolscript_searches_total", product="tools", outcome="ok") == SEARCHES
        assert value(page, "toolscript_search_seconds_count", product="tools") == SEARCHES
        assert value(page, "toolscript_documents_put_total", outcome="created") == 1
        assert value(page, "toolscript_catalog_items") == value(page, "toolscript_index_items") == 1
        assert value(page, "toolscript_backlog_items") == 0
        # Of two processes, each with a pool of its own.
        assert value(page, "toolscript_postgres_pool_connections_max") == 2 * 10
        assert value(page, "toolscript_build_info", version=__version__) == 1
    assert sorted(json.loads(line)["query_id"] for line in log.read_text().splitlines()) == sorted(ids)
    assert [item.trace_id for item in searches] == [TRACE] * SEARCHES
