"""`toolscript tenants` on a cluster: a killed move, the second run, and the erasure of the tenant."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Installation, fresh_database
from tests.e2e import commands
from tests.support.audit_entries import by_me
from tests.support.clusters import Cluster, fresh_cluster
from tests.unit.documents.tenants_http.filled import Engines, Tenants, documents
from toolscript.core.auth.model import Tenant
from toolscript.core.settings.service import Settings
from toolscript.documents.qdrant.shards import Stage, cluster_view, keys_of, own_key

pytestmark = pytest.mark.requirement("DOC-004", "DOC-006")

BIG = Tenant("big")
MANY = 300
SOON = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with fresh_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def tenants(cluster: Cluster, engines: Settings, migrated_database: str) -> Iterator[Tenants]:
    with fresh_database(engines, migrated_database) as url:
        environment = {
            "TOOLSCRIPT_POSTGRES_URL": url,
            "TOOLSCRIPT_QDRANT_URL": "http://127.0.0.1",
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(cluster.grpc_port(1)),
            "TOOLSCRIPT_QDRANT_REPLICAS": "2",
            "TOOLSCRIPT_DOCUMENT_SHARDS": "1",
        }
        filled = Tenants(Installation(environment))
        filled.put("big", documents(MANY))
        filled.put("small", documents(5))
        yield filled


@pytest.mark.nightly
def test_a_tenant_is_moved_by_the_second_run_if_the_first_is_killed(tenants: Tenants, tmp_path: Path) -> None:
    _kill_after_its_start(tenants)
    moved = tenants.json("move", "big")
    assert moved["own_shard"]
    rows = {row["name"]: row for row in tenants.json("list")["results"]}
    assert rows["big"]["document_count"] == MANY
    assert rows["big"]["chunk_count"] == moved["chunks"]
    assert {name: row["has_own_shard"] for name, row in rows.items()} == {"big": True, "small": False}
    path = tmp_path / "big.jsonl"
    assert tenants.json("export", "big", "--out", str(path))["documents"] == MANY
    assert {json.loads(line)["id"] for line in path.read_bytes().splitlines()} == {
        document.id for document in documents(MANY)
    }
    stdout, _ = tenants("move", "big")
    assert stdout == f"{moved['passages']:,} chunks are in a shard of their own\n"


def test_a_tenant_with_its_own_shard_is_erased_shard_and_all(tenants: Tenants) -> None:
    tenants("move", "big")
    erased = tenants.json("erase", "big", "--yes")
    assert erased["documents"] == MANY
    assert tenants.on_engines(_keys) == {"shared_0"}
    assert [(row["name"], row["document_count"]) for row in tenants.json("list")["results"]] == [("small", 5)]
    assert "tenant big had no data" in tenants("erase", "big", "--yes")[0]
    entries = by_me(tenants.installation.environment, "tenant.move", "tenant.erase")
    assert entries == [("tenant.move", 1), ("tenant.erase", MANY)]


def test_an_unknown_tenant_is_not_moved(tenants: Tenants) -> None:
    _, stderr = tenants("move", "misspelt", code=2)
    assert "toolscript tenants list" in stderr
    assert "own_misspelt" not in tenants.on_engines(_keys)


def _kill_after_its_start(tenants: Tenants) -> None:
    command = commands.command("tenants", "move", "big")
    moving = subprocess.Popen(
        command, env=commands.environment(tenants.installation.environment), stderr=subprocess.PIPE
    )
    try:
        tenants.on_engines(_wait_until_started)
    finally:
        moving.send_signal(signal.SIGKILL)
        _, stderr = moving.communicate(timeout=SOON)
    assert moving.returncode == -signal.SIGKILL, stderr


async def _wait_until_started(engines: Engines) -> None:
    ends_at = time.monotonic() + SOON
    while (await cluster_view(engines.engine, engines.index.collection)).stage(own_key(BIG)) is Stage.ABSENT:
        assert time.monotonic() < ends_at
        await asyncio.sleep(0.01)


async def _keys(engines: Engines) -> frozenset[str]:
    return await keys_of(engines.engine, engines.index.collection)
