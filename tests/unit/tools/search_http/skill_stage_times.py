"""How long the skill stage takes, with the engine and from memory.

`python -m tests.unit.tools.search_http.skill_stage_times` needs the engines' addresses in the environment,
and TOOLSCRIPT_TEST_MODEL.
"""

import asyncio
import os
import statistics
import sys
import uuid

import psycopg

from tests.conftest import Installation, fresh_installation
from tests.unit.tools.search_http.builders import Searching
from tests.unit.tools.search_http.catalog import stock
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.settings.service import Settings

QUERIES = 300


async def measured(installation: Installation) -> dict[str, list[float]]:
    """Send queries one by one, in turns, in literal mode, where the skill stage is one dense search."""
    spent: dict[str, list[float]] = {"engine": [], "memory": []}
    async with (
        serving(installation) as from_engine,
        serving(installation, TOOLSCRIPT_SKILL_COPY="true") as from_memory,
    ):
        services = {"engine": Searching(from_engine), "memory": Searching(from_memory)}
        for number in range(QUERIES):
            for name, searching in services.items():
                answer = await searching.search(f"read file number {number}", search_type="semantic")
                spent[name].append(answer["metadata"]["skill_search_time_ms"])
    return {name: sorted(times[20:]) for name, times in spent.items()}


def main() -> None:
    engines = Settings()
    admin = engines.postgres_url.get_secret_value()
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}".encode())
        url = f"{admin.rpartition('/')[0]}/{name}"
        upgrade(url)
        with fresh_installation(engines, url, os.environ["TOOLSCRIPT_TEST_MODEL"]) as fresh:
            stock(fresh)
            for where, times in asyncio.run(measured(fresh)).items():
                p95 = times[int(len(times) * 0.95)]
                sys.stdout.write(f"{where}: p50 {statistics.median(times):.2f} ms, p95 {p95:.2f} ms\n")
        conn.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


if __name__ == "__main__":
    main()
