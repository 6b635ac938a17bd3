"""Limits of `POST /api/v1/jobs`: it needs a config file, room in the queue, and a running process."""

from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.gateway.machines import mcp_server
from tests.unit.tools.sources_http.builders import JOBS, catalog, described, serving, write_config
from toolscript.core.postgres.pool import open_pool
from toolscript.tools.catalog.jobs import AT_ONCE, MAX_WAITING
from toolscript.tools.model.catalog import JobState
from toolscript.tools.postgres.contents import PostgresCatalogContents
from toolscript.tools.postgres.jobs import PostgresSyncJobs

pytestmark = pytest.mark.requirement("SK-010")


async def test_without_a_config_file_no_server_is_synced(installed: Installation) -> None:
    async with serving(installed) as service:
        error = await service.refused("POST", JOBS, 503, {})
    assert "TOOLSCRIPT_SYNC_CONFIG" in error["details"]["hint"]


async def test_a_missing_config_file_is_named(installed: Installation, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    async with serving(installed, TOOLSCRIPT_SYNC_CONFIG=str(missing)) as service:
        error = await service.refused("POST", JOBS, 503, {})
    assert str(missing) in error["message"]


async def test_a_full_queue_refuses_syncs_and_open_ones_are_interrupted_when_the_service_stops(
    installed: Installation, tmp_path: Path
) -> None:
    servers = {"hanging": mcp_server("faulty", "hangs_at_start")}
    config = write_config(tmp_path / "servers.json", servers)
    async with serving(installed, TOOLSCRIPT_SYNC_CONFIG=config) as service:
        accepted = [await service.ask("POST", JOBS, 202, {}) for _ in range(AT_ONCE + MAX_WAITING)]
        error = await service.refused("POST", JOBS, 503, {})
        assert error["details"]["running_or_waiting"] == AT_ONCE + MAX_WAITING
    url = installed.settings.postgres_url.get_secret_value()
    async with open_pool(url, size=1) as pool:
        states = [(await PostgresSyncJobs(pool).find(job["id"])).state for job in accepted]
    assert states == [JobState.INTERRUPTED] * len(accepted)


async def test_a_configured_token_is_required(installed: Installation) -> None:
    body = {"source": "tokens", "items": []}
    async with serving(installed, TOOLSCRIPT_ADMIN_TOKEN="of-the-house") as service:
        assert (await service.refused("POST", JOBS, 401, body))["code"] == "UNAUTHORIZED"
        headers = {"Authorization": "Bearer of-the-house"}
        assert (await service.client.post(JOBS, json=body, headers=headers)).status_code == 202
        assert (await service.client.post("/api/v1/search", json={"query": "read a file"})).status_code == 200


async def test_an_import_that_would_exceed_the_items_of_a_namespace_brings_nothing(
    installed: Installation,
) -> None:
    async with open_pool(installed.settings.postgres_url.get_secret_value(), size=1) as pool:
        listed = await PostgresCatalogContents(pool).sources(("", ""), 100)
    there = sum(source.items for source in listed)
    limit = str(there + 2)
    async with serving(installed, TOOLSCRIPT_MAX_ITEMS_PER_NAMESPACE=limit) as service:
        await service.synced(catalog("limited", described("one"), described("two")))
        refused = await service.synced(catalog("more", described("three")), "failed")
        assert f"would have {there + 3}" in refused["error"]
        assert "TOOLSCRIPT_MAX_ITEMS_PER_NAMESPACE" in refused["error"]
        assert await service.items("more") == {}
        # What is changed or replaced takes no further room.
        await service.synced(catalog("limited", described("two", "Changed."), described("three"), prune=True))
        assert set(await service.items("limited")) == {"two", "three"}
    async with serving(installed, TOOLSCRIPT_MAX_ITEMS_PER_NAMESPACE="0") as service:
        await service.synced(catalog("more", described("three")))
