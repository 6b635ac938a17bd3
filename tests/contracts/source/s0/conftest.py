"""One installation with a catalog and skills, a service on it, and what the engine holds."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.contracts.source.s0.builders import Truth, opened_truth
from tests.unit.tools.search_http.builders import Searching
from tests.unit.tools.search_http.catalog import stock
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.settings.service import Settings


@pytest.fixture(scope="session")
def stocked(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        stock(fresh)
        yield fresh


@pytest.fixture(scope="session")
async def searching(stocked: Installation) -> AsyncIterator[Searching]:
    async with serving(stocked) as service:
        yield Searching(service)


@pytest.fixture(scope="session")
async def truth(stocked: Installation) -> AsyncIterator[Truth]:
    async with opened_truth(stocked) as opened:
        yield opened
