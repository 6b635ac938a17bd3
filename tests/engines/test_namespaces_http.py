"""Every operation of the catalog answers the same with and without a neighbour, on the real engines."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.support.token_issuer import Issuer, an_issuer
from tests.unit.tools.namespaces.builders import ADMIN_TOKEN, BETA, CANARY, READ, Service, plant, run_jobs
from tests.unit.tools.namespaces.conftest import MINE
from tests.unit.tools.namespaces.test_isolation import CALLS, MCP_CALLS, compare, compare_mcp, require_untouched
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.server.serve import open_app
from toolscript.server.skills import default_skills
from toolscript.tools.skills.importing import load_defaults

pytestmark = pytest.mark.requirement("AP-005")


@asynccontextmanager
async def planted_engines(
    installation: Installation, folder: Path, *words: tuple[str, str]
) -> AsyncIterator[Service]:
    """Serve a catalog in the engines with these namespaces, each with its word."""
    settings = Installation(
        {
            **installation.environment,
            "TOOLSCRIPT_JWT_KEYS": str(an_issuer().write(folder / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": Issuer.name,
            "TOOLSCRIPT_ADMIN_TOKEN": ADMIN_TOKEN,
            "TOOLSCRIPT_HOLD_CHANGES": "true",
        }
    ).settings
    async with open_index_writer(settings) as writer:
        await load_defaults(writer.stores.taxonomy, default_skills())
        for namespace, word in words:
            await plant(writer.stores, namespace, word, f"{word}-reviewer")
        await writer.worker(silent).drain()
        async with open_app(settings) as app:
            transport = httpx2.ASGITransport(app, client=("203.0.113.7", 1234))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as http:
                service = Service(app, http, writer.stores)
                await run_jobs(service, *words)
                yield service


@pytest.fixture(scope="module")
def installations(
    engines: Settings, migrated_database: str, model_folder: str
) -> Iterator[tuple[Installation, Installation]]:
    with (
        fresh_database(engines, migrated_database) as one,
        fresh_database(engines, migrated_database) as other,
        fresh_installation(engines, one, model_folder) as first,
        fresh_installation(engines, other, model_folder) as second,
    ):
        yield first, second


@pytest.fixture(scope="module")
async def services(
    installations: tuple[Installation, Installation], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Service, Service]]:
    """With the neighbour, and without."""
    folder = tmp_path_factory.mktemp("keys")
    async with (
        planted_engines(installations[0], folder, *MINE, (BETA, CANARY)) as shared,
        planted_engines(installations[1], folder, *MINE) as alone,
    ):
        yield shared, alone


@pytest.mark.parametrize("operation", CALLS)
async def test_an_answer_is_the_same_with_and_without_a_neighbour(
    operation: str, services: tuple[Service, Service]
) -> None:
    await compare(operation, *services)


async def test_mcp_tools_answer_the_same_with_and_without_a_neighbour(services: tuple[Service, Service]) -> None:
    for tool, arguments in MCP_CALLS:
        await compare_mcp(tool, arguments, READ, *services)


async def test_the_catalog_of_the_neighbour_is_untouched_by_all_of_this(services: tuple[Service, Service]) -> None:
    await require_untouched(services[0])
