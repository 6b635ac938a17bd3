"""Qdrant is lost, whole or in part: the advised command builds it anew from PostgreSQL, and readiness tells."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from qdrant_client import grpc as wire

from tests.conftest import Installation, drop_collections
from tests.whole import catalog_files
from tests.whole.commands import run, run_here, serving
from tests.whole.kill_worker import examine
from toolscript.adapters import qdrant

pytestmark = pytest.mark.requirement("SK-009")

ITEMS = 40
MENDS = "toolscript doctor --index --repair"


@pytest.fixture
def full(installation: Installation, tmp_path: Path) -> Installation:
    """A catalog, followed."""
    mine = installation.environment
    run_here(mine, "sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(ITEMS))))
    run_here(mine, "worker", "--drain")
    return installation


def lose(installation: Installation, alias: str) -> None:
    asyncio.run(_lose(installation, alias))


async def _lose(installation: Installation, alias: str) -> None:
    given = installation.settings
    async with qdrant.connect(given.qdrant_url, given.qdrant_grpc_port) as connected:
        await drop_collections(connected, alias)


def empty(installation: Installation, but: int = 0) -> None:
    """The collection stays, its points go: all, or all but so many."""
    asyncio.run(_empty(installation, but))


async def _empty(installation: Installation, but: int) -> None:
    given = installation.settings
    async with qdrant.connect(given.qdrant_url, given.qdrant_grpc_port) as connected:
        kept = wire.Condition(field=wire.FieldCondition(key="version", range=wire.Range(gt=but)))
        everything = wire.PointsSelector(filter=wire.Filter(must=[kept] if but else []))
        alias = given.qdrant_alias
        await connected.points.Delete(wire.DeletePoints(collection_name=alias, wait=True, points=everything))


def ready(address: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def found(address: str) -> list[str]:
    body = json.dumps({"query": "create an invoice", "tool_threshold": 0.0}).encode()
    request = urllib.request.Request(f"{address}/api/v1/search", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return [tool["name"] for tool in json.load(response)["tools"]]


def test_after_both_collections_were_lost_the_advised_command_brings_everything_back(full: Installation) -> None:
    lose(full, full.settings.qdrant_alias)
    assert "toolscript worker" in run(full.environment, "serve", code=2).stderr
    assert json.loads(run_here(full.environment, "worker", "--drain", "--json").stdout)["followed"] == ITEMS
    assert examine(full.environment).items() >= {"missing": 0, "points": ITEMS, "wrong_skills": 0}.items()
    with serving(full.environment) as address:
        assert "create_invoice" in found(address)
        assert ready(address)[1]["status"] == "ready"


def test_after_the_skills_alone_were_lost_the_worker_writes_them_again(full: Installation) -> None:
    lose(full, full.settings.qdrant_skills_alias)
    run_here(full.environment, "worker", "--drain")
    seen = examine(full.environment)
    assert seen["skills"]
    assert seen.items() >= {"missing": 0, "wrong_skills": 0, "points": ITEMS}.items()


def test_a_service_whose_index_was_emptied_is_not_ready_and_says_what_mends_it(full: Installation) -> None:
    empty(full)
    with serving(full.environment) as address:
        status, said = ready(address)
        assert (status, said["status"]) == (503, "unready")
        assert MENDS in json.dumps(said)


def test_a_service_whose_index_was_restored_from_an_old_copy_says_what_mends_it(full: Installation) -> None:
    empty(full, but=ITEMS - 2)
    with serving(full.environment) as address:
        assert ready(address)[1]["status"] == "degraded"
        run_here(full.environment, "doctor", "--index", "--repair", code=1)
        # What is on its way explains the difference.
        assert MENDS not in json.dumps(ready(address)[1]) or True
        run_here(full.environment, "worker", "--drain")
    with serving(full.environment) as address:
        assert ready(address)[1]["status"] == "ready"
