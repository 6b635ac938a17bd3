"""The service behind a PgBouncer in transaction mode, with four sessions for all."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.conftest import fresh_database, fresh_installation
from tests.e2e import catalog_files
from tests.e2e.commands import run_here, serving
from tests.support.pgbouncer import pgbouncer
from toolscript.core.settings.service import Settings

CLIENTS, ANSWERS = 8, 400


@pytest.mark.nightly
def test_commands_and_many_clients_get_along_with_four_sessions(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path: Path
) -> None:
    file = str(catalog_files.write(tmp_path / "items.jsonl", catalog_files.rows(10)))
    with (
        pgbouncer(engines.postgres_url.get_secret_value()) as bouncer,
        fresh_database(engines, migrated_database, bouncer) as url,
        fresh_installation(engines, url, model_folder) as installation,
    ):
        mine = installation.environment
        run_here(mine, "migrate")
        run_here(mine, "sync", file)
        run_here(mine, "worker", "--drain")
        run_here(mine, "skills", "rebuild")
        with serving(mine) as service:
            statuses = asyncio.run(_statuses(service))
            result = httpx2.post(
                f"{service}/api/v1/search", json={"query": "create an invoice"}, timeout=60
            ).json()
    assert statuses == {200: ANSWERS}
    assert result["metadata"]["degraded"] == []
    assert result["tools"][0]["input_schema"]


async def _statuses(service: str) -> Counter[int]:
    statuses: Counter[int] = Counter()

    async def ask(client: httpx2.AsyncClient) -> None:
        for _ in range(ANSWERS // CLIENTS):
            # A busy machine may refuse some requests temporarily, but none for good.
            while (status := (await client.get(f"{service}/api/v1/skills")).status_code) == 503:  # noqa: ASYNC110
                await asyncio.sleep(1.0)
            statuses[status] += 1

    async with asyncio.timeout(240), httpx2.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(ask(client) for _ in range(CLIENTS)))
    return statuses
