"""Checks what the pages name: files, modules, links and headings exist. `make lint` runs it.

The architecture page has a row for each folder and each import contract, and Git ignores what the guides write.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "toolscript"
# Their first columns quote file names of another project.
QUOTING = ROOT / "docs" / "contract"
# A signing key must not be committed by accident.
IGNORED = ("keys/signing-key.json", "keys/jwks.json", "signing-key.json", "other.jsonl")

IN_THE_PACKAGE = re.compile(r"\bsrc/toolscript/[\w/.-]*\w")
MODULE = re.compile(r"(?<![\w./-])(?:toolscript|benchmarks|tests)(?:\.[a-z_]\w*)+(?!\w*[/:])")
IN_BACKTICKS = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def main() -> int:
    pages = [ROOT / name for name in _committed() if name.endswith(".md") and (ROOT / name).is_file()]
    found = [f"{page.relative_to(ROOT)}: {finding}" for page in pages for finding in _of_page(page)]
    found += [*_of_architecture(), *_of_ignored()]
    sys.stderr.writelines(f"{finding}\n" for finding in found)
    return 1 if found else 0


def _committed() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({*filter(None, listed.split("\0"))})


def _of_page(page: Path) -> Iterator[str]:
    text = page.read_text("utf-8")
    yield from (f"no file {path}" for path in IN_THE_PACKAGE.findall(text) if not (ROOT / path).exists())
    yield from (f"no module {name}" for name in MODULE.findall(text) if not _is_module(name))
    if QUOTING not in page.parents:
        folders = {path.name for parent in (ROOT, PACKAGE) for path in parent.iterdir() if path.is_dir()}
        for path in IN_BACKTICKS.findall(text):
            is_ours = path.endswith(".py") or path.split("/")[0] in folders
            if is_ours and not any((parent / path).exists() for parent in (ROOT, PACKAGE)):
                yield f"no file {path}"
    if page.parent in (ROOT, ROOT / "docs"):
        yield from (f"no file {link}" for link in LINK.findall(text) if not (page.parent / link).exists())
        for name, anchor in ANCHOR.findall(text):
            to = page.parent / name if name else page
            if to.is_file() and anchor not in _anchors(to):
                yield f"no heading {name}#{anchor}"


def _is_module(dotted: str) -> bool:
    path = (ROOT / "src" if dotted.startswith("toolscript") else ROOT).joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def _anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub generates from headings."""
    headings = HEADING.findall(path.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _of_architecture() -> Iterator[str]:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    folders = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    contracts = [contract["name"] for contract in project["tool"]["importlinter"]["contracts"]]
    rows = [*(f"| `{name}/` |" for name in folders), *(f"| {name} |" for name in contracts)]
    yield from (f"docs/architecture.md: no row {row}" for row in rows if row not in page)


def _of_ignored() -> Iterator[str]:
    for path in IGNORED:
        asked = subprocess.run(["git", "check-ignore", "--no-index", "-q", path], cwd=ROOT, check=False)
        if asked.returncode:
            yield f".gitignore: {path}, which a guide writes, is not ignored"


if __name__ == "__main__":
    sys.exit(main())
