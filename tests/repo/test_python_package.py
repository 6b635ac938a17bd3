"""The package as its users have it: typed, quick to import, and described by pages that run."""

import os
import re
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.typescript_client.conftest import Demo, demo
from tests.repo.shell_pages import GATEWAY_PRELUDE, ROOT, code_of, finished, gateway_environment, page, section
from tests.support.npm_tools import installed

__all__ = ["demo"]

pytestmark = pytest.mark.requirement("AP-002")

CONSUMER = ROOT / "tests" / "support" / "consumer"
RIGHT, WRONG = "consumer.py", "wrong.py"
PAGE = page("docs/python.md")
IN_PROCESS = "Your gateway"
MAX_IMPORT_SECONDS = 0.030
RUNS = 15


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's project, outside the checkout, where its settings of the checkers do not apply."""
    folder = tmp_path_factory.mktemp("consumer")
    for name in (RIGHT, WRONG):
        (folder / name).write_text((CONSUMER / f"{name}.txt").read_text("utf-8"), "utf-8")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', "utf-8")
    return folder


def found_by(command: list[str], folder: Path, error: str) -> dict[str, set[str]]:
    """Return the lines with errors by file. Both at once: a checker spends most of its time on the package."""
    done = subprocess.run(
        [*command, RIGHT, WRONG], cwd=folder, check=False, capture_output=True, text=True, timeout=600
    )
    assert " error" in done.stdout, done.stdout + done.stderr
    return {name: set(re.findall(rf"{name}:(\d+){error}", done.stdout)) for name in (RIGHT, WRONG)}


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_passes_a_users_program_and_finds_mistakes(checker: str, consumer: Path) -> None:
    if checker == "mypy":
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file="]
        found = found_by(command, consumer, ": error")
    else:
        program = installed(CONSUMER) / "node_modules" / ".bin" / "pyright"
        found = found_by([str(program), "--pythonpath", sys.executable], consumer, r":\d+ - error")
    lines = (consumer / WRONG).read_text("utf-8").splitlines()
    mistakes = {str(number) for number, line in enumerate(lines, 1) if line.startswith("    ")}
    assert found[RIGHT] == set()
    assert found[WRONG] == mistakes if checker == "mypy" else found[WRONG] >= mistakes


def cpu_of(code: str) -> float:
    """Return the processor seconds of a Python that runs the code, the least of several runs."""
    seconds = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


@pytest.mark.alone
def test_importing_the_package_costs_next_to_nothing() -> None:
    assert cpu_of("import toolscript") - cpu_of("pass") <= MAX_IMPORT_SECONDS


@pytest.mark.slow
def test_the_wheel_says_that_it_is_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    assert "toolscript/py.typed" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.slow
async def test_the_gateway_of_the_page_works_as_written(
    home: Path, port: str, model_folder: str, tmp_path: Path
) -> None:
    (program,) = code_of(section(PAGE, IN_PROCESS), "python")
    (home / "main.py").write_text(program, "utf-8")
    (home / "notes.txt").write_text("Buy milk.", "utf-8")
    script = f"{GATEWAY_PRELUDE}toolscript config import --yes >/dev/null\npython main.py"
    output, _ = await finished(script, gateway_environment(home, port, model_folder), tmp_path, home)
    first, *_, missing, result = output.splitlines()
    assert first.startswith("filesystem__read_"), output
    assert missing.startswith("NOT_FOUND there is no tool filesystem__read_txt_file did you mean"), output
    assert result == "False Buy milk."


@pytest.mark.slow
def test_the_clients_of_the_page_work_as_written(demo: Demo, tmp_path: Path) -> None:
    programs = code_of(PAGE.replace(section(PAGE, IN_PROCESS), ""), "python")
    assert len(programs) == 4
    environment = {**os.environ, "TOOLSCRIPT_SERVICE_URL": demo.url, "TOOLSCRIPT_TOKEN": demo.token}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout.splitlines()
        for program in programs
    ]
    tools, tasks, lists, errors = outputs
    assert tools[0].startswith("create_event 0.")
    assert tools[1:2] == ["300 0"]
    assert tools[3] == "[]"
    assert tasks[0].startswith("create_event ")
    assert int(lists[1]) == 30
    assert errors[0].startswith("NOT_FOUND ")
