"""Qdrant loses data: the suggested command rebuilds it from PostgreSQL, and readiness reports it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from qdrant_client import grpc as wire

from tests.chaos.kill_worker import examine
from tests.conftest import Installation, drop_collections
from tests.e2e import catalog_files
from tests.e2e.commands import run_here
from tests.support.audit_entries import by_me
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.server.serve import open_app

pytestmark = pytest.mark.requirement("SK-009")

ITEMS = 40
REPAIR_HINT = "toolscript doctor --index --repair"


@pytest.fixture
def full(installation: Installation, tmp_path: Path) -> Installation:
    """An indexed catalog."""
    mine = installation.environment
    run_here(mine, "migrate")
    run_here(mine, "sync", str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(ITEMS))))
    run_here(mine, "worker", "--drain")
    return installation


def lose(installation: Installation, alias: str) -> None:
    asyncio.run(_lose(installation, alias))


async def _lose(installation: Installation, alias: str) -> None:
    value = installation.settings
    async with open_qdrant(value.qdrant_url, value.qdrant_grpc_port) as connected:
        await drop_collections(connected, alias)


def empty(installation: Installation, points: int) -> None:
    """Delete so many points, but keep the collection."""
    asyncio.run(_empty(installation, points))


async def _empty(installation: Installation, points: int) -> None:
    value = installation.settings
    async with open_qdrant(value.qdrant_url, value.qdrant_grpc_port) as connected:
        alias = value.qdrant_alias
        page = await connected.points.Scroll(wire.ScrollPoints(collection_name=alias, limit=points))
        going = wire.PointsSelector(points=wire.PointsIdsList(ids=[point.id for point in page.result]))
        await connected.points.Delete(wire.DeletePoints(collection_name=alias, wait=True, points=going))


@asynccontextmanager
async def serving(installation: Installation) -> AsyncIterator[httpx.AsyncClient]:
    async with open_app(installation.settings) as app:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield client


async def _ready(installation: Installation) -> tuple[int, dict[str, object]]:
    async with serving(installation) as client:
        message = await client.get("/readyz")
        return message.status_code, message.json()


def ready(installation: Installation) -> tuple[int, dict[str, object]]:
    return asyncio.run(_ready(installation))


async def _found(installation: Installation) -> list[str]:
    async with serving(installation) as client:
        message = await client.post("/api/v1/search", json={"query": "create an invoice", "tool_threshold": 0.0})
        return [tool["name"] for tool in message.json()["tools"]]


async def _refused(installation: Installation) -> str:
    async with serving(installation) as client:
        message = await client.post("/api/v1/search", json={"query": "create an invoice"})
        assert message.status_code == 503
        return str(message.json()["error"]["details"]["hint"])


def test_after_both_collections_were_lost_the_advised_command_brings_everything_back(full: Installation) -> None:
    lose(full, full.settings.qdrant_alias)
    assert "toolscript worker" in asyncio.run(_refused(full))
    assert json.loads(run_here(full.environment, "worker", "--drain", "--json").stdout)["indexed"] == ITEMS
    assert ready(full)[1]["status"] == "ready"
    assert "create_invoice" in asyncio.run(_found(full))
    assert examine(full.environment).items() >= {"missing": 0, "points": ITEMS, "wrong_skills": 0}.items()


def test_after_the_skills_alone_were_lost_the_worker_writes_them_again(full: Installation) -> None:
    lose(full, full.settings.qdrant_skills_alias)
    run_here(full.environment, "worker", "--drain")
    seen = examine(full.environment)
    assert seen["skills"]
    assert seen.items() >= {"missing": 0, "wrong_skills": 0, "points": ITEMS}.items()


def test_a_service_with_an_emptied_index_has_no_search_and_names_the_repair(
    full: Installation,
) -> None:
    empty(full, ITEMS)
    status, message = ready(full)
    assert (status, message["status"]) == (200, "unready")
    assert REPAIR_HINT in json.dumps(message)


def test_a_service_with_an_index_from_an_old_backup_names_the_repair(full: Installation) -> None:
    empty(full, 2)
    status, message = ready(full)
    assert (status, message["status"]) == (200, "degraded")
    assert REPAIR_HINT in json.dumps(message)
    run_here(full.environment, "doctor", "--index", "--repair")
    assert by_me(full.environment, "index.repair") == [("index.repair", 2)]
    # Pending items explain the difference.
    assert ready(full)[1]["status"] == "ready"
    run_here(full.environment, "worker", "--drain")
    assert examine(full.environment).items() >= {"missing": 0, "points": ITEMS}.items()
