"""The script that measures the code runs, and prints plausible numbers."""

import re
import subprocess
import sys

import pytest

from tests.repo.sources import PACKAGE, ROOT


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    command = [sys.executable, str(ROOT / "scripts" / "measure-code"), "--traces"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_the_script_counts_the_files_of_the_package(printed: dict[str, str]) -> None:
    assert int(printed["Python files"].replace(",", "")) == len(list(PACKAGE.rglob("*.py")))


def test_every_value_is_a_number(printed: dict[str, str]) -> None:
    assert [name for name, value in printed.items() if not re.match(r"[\d.,]+", value)] == []
    assert len(printed) == 15


@pytest.mark.parametrize(
    ("search", "folders"),
    [
        ("POST /api/v1/search", {"core", "testing", "tools"}),
        ("toolscript search", {"cli", "core", "gateway"}),
    ],
)
def test_a_trace_goes_through_one_capability_and_what_is_around_it(
    printed: dict[str, str], search: str, folders: set[str]
) -> None:
    trace = next(value for name, value in printed.items() if name.startswith(search))
    assert set(re.findall(r"([a-z]+) \d", trace)) == folders
