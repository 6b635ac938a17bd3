"""Rules of the code base that a review would check."""

import ast
import re
from pathlib import Path

import pytest

from tests.repo.sources import ROOT, committed_files, functions, modules, name_of, own_lines, text_of

MAX_LINES_OF_A_FUNCTION = 60
CODE_FOLDERS = {"src", "benchmarks", "tests", "scripts"}
READS_ENVIRONMENT = re.compile(r"src/toolscript/(core|gateway|server|client)/settings\b")
NO_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc"}

# Letters in brackets, so that this line does not find itself.
UNFINISHED = re.compile(r"\b([T]ODO|[F]IXME|[X]XX)\b")
MACHINE = re.compile(r"(?<![\w.~$}])/(?:work|root|home|tmp)/")
REGISTRY = re.compile(
    r"https?://[^\s\"'`<>)]*?(?:pypi|pythonhosted|npmjs|registry|artifactory|nexus|/simple\b)", re.IGNORECASE
)
INDEX_LINE = re.compile(r"^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b", re.MULTILINE)
PINNED = re.compile(r"^[A-Za-z0-9][\w.\[\],-]*==\S+", re.MULTILINE)


def code_files() -> list[Path]:
    code = [path for path in committed_files() if path.relative_to(ROOT).parts[0] in CODE_FOLDERS]
    return [path for path in code if path.suffix != ".npy"]


def findings(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    result = []
    for path in files:
        for number, line in enumerate(text_of(path).splitlines(), 1):
            result += [f"{name_of(path)}:{number}: {match.group()}" for match in pattern.finditer(line)]
    return result


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{name}: {function.name} has {own_lines(function)} lines"
        for name, tree in modules()
        for function in functions(tree)
        if own_lines(function) > MAX_LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_no_module_has_a_meaningless_name() -> None:
    names = [path.relative_to(ROOT) for path in code_files()]
    assert [str(name) for name in names if {*name.parent.parts, name.stem} & NO_NAMES] == []


def test_the_environment_is_read_in_settings_only() -> None:
    readers = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name) and _reads_environment(node)
    ]
    assert [reader for reader in readers if not READS_ENVIRONMENT.match(reader)] == []
    assert readers, "the settings themselves do, or this test looks for the wrong thing"


def _reads_environment(node: ast.Attribute | ast.Name) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    return name in {"environ", "environb", "getenv", "getenvb"}


def test_nothing_prints() -> None:
    prints = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert prints == []


def test_no_comment_defers_work() -> None:
    assert findings(UNFINISHED, code_files()) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert findings(MACHINE, committed_files()) == []


def test_no_file_holds_the_address_of_a_package_registry() -> None:
    assert findings(REGISTRY, committed_files()) == []


LOCKS = sorted(ROOT.glob("requirements*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=[path.name for path in LOCKS])
def test_a_lock_has_a_hash_for_every_package_and_no_index(lock: Path) -> None:
    text = lock.read_text("utf-8")
    entries = [entry for entry in re.split(r"(?<!\\)\n", text) if PINNED.match(entry)]
    assert entries, "no package in it"
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert INDEX_LINE.findall(text) == []


def test_all_locks_exist_or_none() -> None:
    expected = {"requirements.lock", "requirements-service.lock", "requirements-dev.lock"}
    assert {path.name for path in LOCKS} in (expected, set())
