"""A plugin of pytest that keeps which test runs which lines of the package: `--contexts FILE`."""

from collections.abc import Generator

import pytest
from coverage import Coverage

from tests.mutations.changes import SOURCE

_running: list[Coverage] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--contexts", default="", help="where to keep which test runs which lines")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--contexts")
    # Where workers run the tests, the process that starts them has nothing to keep.
    if file and (hasattr(config, "workerinput") or not config.getoption("numprocesses", 0)):
        _running.append(Coverage(data_file=file, data_suffix=True, source=[str(SOURCE)], config_file=False))
        _running[0].start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    for coverage in _running:
        coverage.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        for coverage in _running:
            coverage.switch_context("")


def pytest_sessionfinish() -> None:
    for coverage in _running:
        coverage.stop()
        coverage.save()
