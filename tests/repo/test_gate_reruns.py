"""The gate runs a few tests that fail once more; it passes only if they pass then."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN_TESTS = Path(__file__).parents[2] / ".ci" / "run_tests"
AGAIN = "once more, alone"
PASSING = "def test_passing(): pass\n"
BROKEN = "def test_broken(): assert False\n"
# Whether this is the first time in a folder.
FIRST = """
from pathlib import Path
import pytest

def is_first():
    first = not Path("seen").exists()
    Path("seen").touch()
    return first

"""
FLAKY = f"{FIRST}def test_flaky(): assert not is_first()\n"
FLAKY_FIXTURE = f"{FIRST}@pytest.fixture\ndef once(): assert not is_first()\ndef test_of_fixture(once): pass\n"
FLAKY_PART = f"{FIRST}def test_parts(subtests):\n    with subtests.test(): assert not is_first()\n"


def gate(folder: Path, recipe: str = "python -m pytest -q", seconds: str = "60", **files: str) -> tuple[int, str]:
    """Run the gate's tests in a project with these files of tests; return its exit code and output."""
    (folder / ".venv").mkdir()
    (folder / "Makefile").write_text(f"test:\n\t@{recipe}\n", "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, "utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [RUN_TESTS, "test", seconds],
        cwd=folder,
        env={"PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "name"),
    [(FLAKY, "test_flaky"), (FLAKY_FIXTURE, "test_of_fixture"), (FLAKY_PART, "test_parts")],
    ids=["test", "fixture", "subtest"],
)
def test_what_passes_the_second_time_passes_and_is_named_by_both_runs(
    tmp_path: Path, text: str, name: str
) -> None:
    code, output = gate(tmp_path, one=text, two=PASSING)
    assert (code, AGAIN in output) == (0, True), output
    before, after = output.split(AGAIN)
    assert f"test_one.py::{name}" in before
    assert f"test_one.py::{name} PASSED" in after
    assert "test_passing" not in after


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    code, output = gate(tmp_path, one=BROKEN, two=PASSING)
    assert (code, AGAIN in output) == (1, True), output


@pytest.mark.parametrize(
    "files",
    [
        {"one": f"import pytest\n@pytest.mark.parametrize('n', range(9))\n{BROKEN.replace('()', '(n)')}"},
        {"one": "import no_such_module\n", "two": PASSING},
        {"one": PASSING, "two": "def test_exits():\n    import pytest\n    pytest.exit('early', 3)\n"},
        {"one": FLAKY, "two": "def test_dies():\n    import os\n    os._exit(1)\n"},
    ],
    ids=["nine failures", "no collection", "an early end", "a process that dies"],
)
def test_what_no_second_run_can_mend_fails_at_once(tmp_path: Path, files: dict[str, str]) -> None:
    code, output = gate(tmp_path, **files)
    assert code != 0, output
    assert AGAIN not in output, output


def test_a_worker_that_crashed_or_a_run_out_of_time_fails_at_once(tmp_path: Path) -> None:
    said = "FAILED test_one.py::test_x - worker 'gw0' crashed while running 'test_one.py::test_x'"
    (tmp_path / "crashed").mkdir()
    code, output = gate(tmp_path / "crashed", f'echo "{said}"; echo "1 failed in 2.00s"; false')
    assert (code, AGAIN in output) == (1, False), output
    (tmp_path / "late").mkdir()
    code, output = gate(tmp_path / "late", 'echo "FAILED test_one.py::test_x - x"; sleep 60', "0.2")
    assert (code, AGAIN in output) == (1, False), output


def test_failures_of_an_earlier_run_are_not_run_again(tmp_path: Path) -> None:
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text('{"test_old.py::test_broken": true}', "utf-8")
    code, output = gate(tmp_path, "python -m pytest -q test_one.py", one=FLAKY, old=BROKEN)
    assert (code, AGAIN in output) == (0, True), output
