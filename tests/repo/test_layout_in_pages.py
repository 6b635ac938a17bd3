"""Pages about the layout name existing files and modules, every folder and every import rule."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.repo.sources import PACKAGE, ROOT, committed_files, name_of

PAGES = [path for path in committed_files() if path.suffix == ".md"]
# Their first columns quote file names of another project.
QUOTING = ROOT / "docs" / "contract"

IN_THE_PACKAGE = re.compile(r"\bsrc/toolscript/[\w/.-]*\w")
MODULE = re.compile(r"(?<![\w./-])(?:toolscript|benchmarks|tests)(?:\.[a-z_]\w*)+(?!\w*[/:])")
IN_BACKTICKS = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FOLDERS = {path.name for parent in (ROOT, PACKAGE) for path in parent.iterdir() if path.is_dir()}


def _is_module(dotted: str) -> bool:
    path = (ROOT / "src" if dotted.startswith("toolscript") else ROOT).joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _exists(name: str) -> bool:
    return any((parent / name).exists() for parent in (ROOT, PACKAGE))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_and_module_of_the_package_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = [path for path in IN_THE_PACKAGE.findall(text) if not (ROOT / path).exists()]
    missing += [module for module in MODULE.findall(text) if not _is_module(module)]
    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if QUOTING not in page.parents], ids=name_of)
def test_every_path_in_backticks_exists_in_the_project_or_in_its_package(page: Path) -> None:
    named = IN_BACKTICKS.findall(page.read_text("utf-8"))
    ours = [path for path in named if path.endswith(".py") or path.split("/")[0] in FOLDERS]
    assert [path for path in ours if not _exists(path)] == []


def test_the_architecture_says_what_is_in_each_folder_of_the_package() -> None:
    folders = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    assert [name for name in folders if f"| `{name}/` |" not in ARCHITECTURE] == []


def test_the_architecture_explains_every_contract_of_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = [contract["name"] for contract in project["tool"]["importlinter"]["contracts"]]
    assert [name for name in contracts if f"| {name} |" not in ARCHITECTURE] == []
