"""Machines for the tests of this folder. Read-only ones are shared by many tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway.catalogs import TOOLS, catalog_servers, write_catalog
from tests.e2e.gateway.machines import Gateway, Machine, copy_of, mcp_server, new_machine

PLAIN_ITEMS = 12


@pytest.fixture(scope="session")
def weights(model_folder: str) -> Path:
    """Return the folder of a real model."""
    if Path(model_folder).is_dir():
        return Path(model_folder)
    from fastembed import TextEmbedding

    return Path(TextEmbedding(model_folder).model._model_dir)  # type: ignore[attr-defined]


@pytest.fixture
def machine(tmp_path: Path, weights: Path) -> Machine:
    """Return a machine without servers."""
    return new_machine(tmp_path / "machine", weights)


def with_servers(folder: Path, weights: Path) -> Machine:
    machine = new_machine(folder, weights)
    file = write_catalog(machine.folder / "tools.jsonl", TOOLS)
    machine.configure({**catalog_servers(file), "plain": mcp_server("plain")})
    return machine


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Machine:
    """Return a machine with all servers, whose tools are cached and embedded; no gateway runs on it."""
    machine = with_servers(tmp_path_factory.mktemp("furnished") / "machine", weights)
    machine.run("search", "anything", "--threshold", "0")
    return machine


@pytest.fixture(scope="session")
def served(furnished: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Gateway]]:
    """The same servers and vectors, with a gateway running that has settled.

    Vectors of a quantised model depend a little on what is embedded with them, so they are not made anew.
    """
    machine = copy_of(furnished, tmp_path_factory.mktemp("served") / "machine")
    with machine.gateway() as gateway:
        yield machine, gateway.until_embedded(len(TOOLS) + PLAIN_ITEMS)


@pytest.fixture(scope="session")
def gateway(served: tuple[Machine, Gateway]) -> Gateway:
    return served[1]
