"""Runs tests against faults, each in a process of its own that starts with what the tests import already there."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from tests.mutations.changes import ROOT, Mutation

SELECTION = ("--hypothesis-profile", "quick", "-m", "not engines and not slow and not nightly")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+::.*?)(?: - .*)?$", re.MULTILINE)
# What most tests import: where these are, the libraries are. Ours are imported anew, with the fault.
MOST = "import sys, tests.conftest, toolscript.server.app, toolscript.gateway.runtime; print(*sys.modules)"
OURS = ("toolscript", "tests", "__main__")
LOOK_EVERY_SECONDS = 0.1


@dataclass(frozen=True)
class Asked:
    """A fault, and the tests of its line."""

    mutation: Mutation
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    asked: Asked
    tree: Path
    until: float


class Chosen:
    """A plugin of pytest that runs these tests, in this order. What is not there any more is left out.

    Where the cases of a test have become one test, that is run for each of them.
    """

    def __init__(self, tests: Sequence[str]) -> None:
        whole = {test.partition("[")[0]: place for place, test in reversed([*enumerate(tests)])}
        self._places = whole | {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])


def preload() -> None:
    """Import the libraries once: loading them takes longer than most tests."""
    named = subprocess.run([sys.executable, "-c", MOST], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in named.stdout.split():
        if name.partition(".")[0] not in OURS:
            with suppress(Exception):
                import_module(name)


def outcomes(all_asked: Iterable[Asked], workers: int, seconds: float) -> Iterator[tuple[Mutation, str]]:
    """Yield each fault with the test that caught it, or "" if none did."""
    with tempfile.TemporaryDirectory() as folder:
        free = [copy_of_tree(Path(folder) / str(number)) for number in range(workers)]
        running: dict[int, Run] = {}
        waiting = iter(all_asked)
        while True:
            for tree in free[:]:
                if (asked := next(waiting, None)) is not None:
                    free.remove(tree)
                    running[_started(asked, tree)] = Run(asked, tree, time.monotonic() + seconds)
            if not running:
                return
            for pid, by in _ended(running):
                run = running.pop(pid)
                (run.tree / run.asked.mutation.file).write_bytes((ROOT / run.asked.mutation.file).read_bytes())
                free.append(run.tree)
                yield run.asked.mutation, by
            time.sleep(LOOK_EVERY_SECONDS)


def copy_of_tree(folder: Path) -> Path:
    """Return a copy of this tree without what Git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def _started(asked: Asked, tree: Path) -> int:
    source = (ROOT / asked.mutation.file).read_bytes()
    (tree / asked.mutation.file).write_bytes(asked.mutation.in_source(source))
    pid = os.fork()
    if not pid:
        os._exit(_run_tests(tree, asked.tests))
    return pid


def _run_tests(tree: Path, tests: Sequence[str]) -> int:
    """Run the tests of a tree in this process, which was forked for it."""
    os.setsid()
    output = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    sys.path[:0] = [str(tree), str(tree / "src")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    for name in [*sys.modules]:
        if name.partition(".")[0] in OURS and name != "__main__":
            del sys.modules[name]
    # Plugins that are loaded already cannot be rewritten, which does not matter here.
    ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    options = ("-p", "no:cacheprovider", "-x", "--no-header", "--tb=no", "-rfE", *ignored, *SELECTION)
    files = [file for file in dict.fromkeys(test.partition("::")[0] for test in tests) if Path(file).is_file()]
    return int(pytest.main([*options, *files], [Chosen(tests)])) if files else 0


def _ended(running: dict[int, Run]) -> Sequence[tuple[int, str]]:
    ended = []
    for pid, run in running.items():
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended.append((pid, _caught_by(run, os.waitstatus_to_exitcode(status))))
        elif time.monotonic() > run.until:
            # Tests may have started other programs: all of them end.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            ended.append((pid, "the time limit"))
    return ended


def _caught_by(run: Run, code: int) -> str:
    if code in (0, int(pytest.ExitCode.NO_TESTS_COLLECTED)):
        return ""
    output = (run.tree / "output.txt").read_text("utf-8", "replace")
    failed = FAILED.search(output)
    return failed["test"] if failed is not None else output.strip()[-200:] or f"exit code {code}"
