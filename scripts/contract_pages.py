"""The pages of docs/contract: one row for each statement of a source document, and the tests that prove it.

People write the rows; this script writes the last column, and the totals in docs/contract.md. A test names its
rows with `@pytest.mark.states("S0-001")`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "contract"
TESTS = ROOT / "tests"
OF_SOURCES = TESTS / "contracts" / "source"

HOWS = ("as written", "literal mode", "otherwise", "no rule")
TOTALS = re.compile(r"(<!-- totals -->\n).*?(<!-- end of totals -->)", re.DOTALL)
COLUMNS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Row:
    id: str
    statement: str
    how: str
    why: str


def contract_pages() -> dict[Path, str]:
    """Return the expected text of each page."""
    tests = tests_by_statement()
    pages = {page: _with_tests(page.read_text("utf-8"), tests) for page in sorted(PAGES.glob("*.md"))}
    front = ROOT / "docs" / "contract.md"
    if front.is_file():
        table = "\n".join(_totals())
        pages[front] = TOTALS.sub(lambda match: f"{match[1]}{table}\n{match[2]}", front.read_text("utf-8"))
    return pages


def rows_by_page() -> dict[Path, list[Row]]:
    return {page: list(_rows(page.read_text("utf-8"))) for page in sorted(PAGES.glob("*.md"))}


def tests_by_statement() -> dict[str, list[str]]:
    """Return the tests by the ids in their `pytest.mark.states(...)`."""
    tests: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.states(" not in text:
            continue
        location = path.relative_to(OF_SOURCES if path.is_relative_to(OF_SOURCES) else ROOT)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for id_ in _statement_ids(node):
                    tests.setdefault(id_, []).append(f"{location}::{node.name}")
    return tests


def _statement_ids(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.states":
            yield from (str(ast.literal_eval(argument)) for argument in mark.args)


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        cells = _cells(line)
        if cells:
            yield Row(*cells[:4])


def _cells(line: str) -> list[str]:
    if not re.match(r"\| S\d-\d{3} \|", line):
        return []
    cells = [cell.strip() for cell in COLUMNS.split(line)[1:-1]]
    if len(cells) != 5:
        raise SystemExit(f"a row of docs/contract has {len(cells)} columns, not 5 (write \\| inside one): {line}")
    return cells


def _with_tests(text: str, tests_by_id: Mapping[str, list[str]]) -> str:
    lines = []
    for line in text.splitlines():
        cells = _cells(line)
        if cells:
            tests = "<br>".join(f"`{test}`" for test in tests_by_id.get(cells[0], ()))
            lines.append(f"| {' | '.join([*cells[:4], tests])} |".replace("|  |", "| |").replace("|  |", "| |"))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _totals() -> Iterator[str]:
    yield "| Page | Statements | " + " | ".join(HOWS) + " |"
    yield "|---|" + "---|" * (len(HOWS) + 1)
    everywhere = Counter[str]()
    for page, rows in rows_by_page().items():
        counted = Counter(row.how for row in rows)
        everywhere.update(counted)
        yield _total(f"[{page.stem}](contract/{page.name})", counted)
    yield _total("all", everywhere)


def _total(name: str, counted: Mapping[str, int]) -> str:
    return f"| {name} | {sum(counted.values())} | " + " | ".join(str(counted.get(how, 0)) for how in HOWS) + " |"
