"""Sync jobs of a running service, and their state after it stops."""

from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, serving
from tests.e2e.gateway.machines import is_alive, mcp_server, until
from tests.e2e.test_sync_servers import server_pid
from tests.unit.tools.sources_http.builders import write_config

pytestmark = pytest.mark.requirement("SK-010")


def test_a_service_that_is_stopped_says_that_its_syncs_are_interrupted_and_ends_the_servers_they_started(
    installation: Installation, tmp_path: Path
) -> None:
    mine, file = installation.environment, tmp_path / "items.jsonl"
    run(mine, "sync", str(catalog_files.write(file, catalog_files.rows(3))))
    run(mine, "worker", "--drain")
    # Named by the file, so that its process can be found.
    hanging = mcp_server("faulty", "hangs_at_start", str(file))
    config = write_config(tmp_path / "servers.json", {"hanging": hanging})
    here = {**mine, "TOOLSCRIPT_SYNC_CONFIG": config, "TOOLSCRIPT_ENVIRONMENT": "development"}
    with serving(here) as url:
        accepted = httpx.post(f"{url}/api/v1/jobs", json={}, trust_env=False, verify=False).json()
        pid = until(lambda: server_pid(file), "the process of the server")
        assert _job(url, accepted)["state"] == "running"
    until(lambda: not is_alive(pid), "the end of the server's process")
    with psycopg.connect(mine["TOOLSCRIPT_POSTGRES_URL"]) as conn:
        result = conn.execute("SELECT state, finished_at IS NOT NULL FROM mcp.sync_jobs").fetchall()
    assert result == [("interrupted", True)]


def _job(url: str, accepted: dict[str, Any]) -> dict[str, Any]:
    return dict(httpx.get(f"{url}/api/v1/jobs/{accepted['id']}", trust_env=False, verify=False).json())
