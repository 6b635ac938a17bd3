"""One installation with a catalog for routed searches, for tests that only read it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
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


@pytest.fixture(scope="module")
async def searching(stocked: Installation) -> AsyncIterator[Searching]:
    async with serving(stocked) as service:
        yield Searching(service)
