"""One machine with the servers of S1, and a running gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.source.gateway.tools import SERVERS, TOOLS
from tests.e2e.gateway.catalogs import catalog_servers, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, copy_of, new_machine


@pytest.fixture(scope="session")
def weights(model_folder: str) -> Path:
    """Return the folder of a real model."""
    if Path(model_folder).is_dir():
        return Path(model_folder)
    from fastembed import TextEmbedding

    return Path(TextEmbedding(model_folder).model._model_dir)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Machine:
    """Return a machine whose tools are cached and embedded, without a gateway. Read-only."""
    machine = new_machine(tmp_path_factory.mktemp("s1") / "machine", weights).here()
    machine.configure(catalog_servers(write_catalog(machine.folder / "tools.jsonl", TOOLS), SERVERS))
    machine.run("search", "anything", "--threshold", "0")
    return machine


@pytest.fixture
def spare(searched: Machine, tmp_path: Path) -> Machine:
    """Return a copy that a test may change."""
    return copy_of(searched, tmp_path / "machine")


@pytest.fixture(scope="session")
def served(searched: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Gateway]]:
    machine = copy_of(searched, tmp_path_factory.mktemp("s1-served") / "machine")
    with machine.gateway() as gateway:
        yield machine, gateway.until_embedded(len(TOOLS))


@pytest.fixture(scope="session")
def person(served: tuple[Machine, Gateway]) -> Machine:
    return served[0]


@pytest.fixture(scope="session")
def gateway(served: tuple[Machine, Gateway]) -> Gateway:
    return served[1]
