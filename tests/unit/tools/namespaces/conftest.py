"""A catalog of two namespaces, and the same one without the neighbour."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.tools.namespaces.builders import ALPHA, BETA, CANARY, Service, planted

MINE = ("default", "plain"), (ALPHA, "amsel")


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A public catalog with the namespaces default, alpha and beta; the words of beta are canaries."""
    folder: Path = tmp_path_factory.mktemp("shared")
    async with planted(folder, *MINE, (BETA, CANARY)) as service:
        yield service


@pytest.fixture(scope="module")
async def alone(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """The same catalog without beta."""
    folder: Path = tmp_path_factory.mktemp("alone")
    async with planted(folder, *MINE) as service:
        yield service
