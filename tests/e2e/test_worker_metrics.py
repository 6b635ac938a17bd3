"""`worker` with a port for its metrics, on the real engines: backlog, indexed and failed items."""

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Installation
from tests.e2e.commands import command, environment, run_here
from tests.support.reserved_ports import reserved_port
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.errors import CatalogUnavailable
from toolscript.core.items import Item, ItemKind
from toolscript.core.postgres.pool import Pool
from toolscript.server.measured import CountedDirtySet
from toolscript.server.metrics import WorkerMetrics
from toolscript.testing import MemoryDirtySet
from toolscript.tools.model.catalog import Claim
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.dirty_set import PostgresDirtySet

pytestmark = [pytest.mark.requirement("DOC-007")]

SOON = 90.0
TOOLS = 5


def page(port: int, **headers: str) -> httpx2.Response:
    return httpx2.get(f"http://127.0.0.1:{port}/metrics", headers=headers, trust_env=False, timeout=30.0)


def until(true: Callable[[], bool], worker: "subprocess.Popen[bytes]") -> None:
    ends_at = time.monotonic() + SOON
    while time.monotonic() < ends_at:
        assert worker.poll() is None, "the worker ended"
        try:
            if true():
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError("not in time")


@contextmanager
def working(installation: Installation, **settings: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    with reserved_port() as port, tempfile.TemporaryFile("w+") as log:
        output = {**installation.environment, "TOOLSCRIPT_WORKER_METRICS_PORT": str(port), **settings}
        worker = subprocess.Popen(command("worker"), env=environment(output), stderr=log)
        try:
            yield port, worker
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SOON) == 0


def test_a_worker_shows_what_it_has_indexed_and_what_waits(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    lines = [f'{{"server": "s", "name": "tool_{n}", "description": "Does {n}"}}\n' for n in range(TOOLS)]
    file.write_text("".join(lines))
    run_here(installation.environment, "sync", str(file))
    with working(installation, TOOLSCRIPT_ADMIN_TOKEN="secret") as (port, worker):
        own = {"authorization": "Bearer secret"}
        until(lambda: value(page(port, **own).content, "toolscript_worker_items_indexed_total") == TOOLS, worker)
        output = page(port, **own).content
        handed_on = page(port, **{"x-forwarded-for": "10.0.0.7"})
    assert value(output, "toolscript_worker_batches_total", outcome="ok") >= 1
    assert value(output, "toolscript_worker_items_failed_total") == 0
    assert value(output, "toolscript_embedding_seconds_count", kind="passages", outcome="ok") >= 1
    assert value(output, "toolscript_postgres_pool_connections_max") == 10
    assert value(output, "toolscript_catalog_items") == TOOLS
    assert value(output, "process_resident_memory_bytes") > 0
    assert handed_on.status_code == 401
    assert b"toolscript_worker" not in handed_on.content


async def test_items_that_fail_and_claims_that_fail_are_counted(pool: Pool) -> None:
    metrics = WorkerMetrics()
    dirty = CountedDirtySet(PostgresDirtySet(pool), metrics.work)
    item = Item("1", ItemKind.TOOL, "fs", "read_file", "Read a file")
    await PostgresCatalog(pool).store("file", [item])
    await dirty.postpone(1, await dirty.claim(1, 10, 60.0), "refused")
    metrics.stores.backlog(await dirty.pending(1))
    output = metrics.page()
    assert value(output, "toolscript_worker_items_failed_total") == 1
    assert value(output, "toolscript_worker_batches_total", outcome="error") == 1
    assert value(output, "toolscript_backlog_items") == 1
    assert 0 < value(output, "toolscript_backlog_oldest_seconds") < SOON


class Away(MemoryDirtySet):
    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        raise CatalogUnavailable("down")


async def test_a_worker_that_cannot_claim_is_counted() -> None:
    metrics = WorkerMetrics()
    with pytest.raises(CatalogUnavailable):
        await CountedDirtySet(Away(), metrics.work).claim(1, 10, 60.0)
    assert value(metrics.page(), "toolscript_worker_batches_total", outcome="error") == 1
