"""Every scenario is played by a test that names it and its requirement."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.gateway.scenarios import SCENARIOS

FOLDER = Path(__file__).parent


def played() -> Iterator[tuple[str, str, set[str]]]:
    """Return each title with its test and the requirements of the test, including those of its file."""
    for path in sorted(FOLDER.glob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        of_file = {
            id_ for node in tree.body if isinstance(node, ast.Assign) for id_ in _named(node, "requirement")
        }
        for test in tree.body:
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                ids = of_file | {id_ for item in test.decorator_list for id_ in _named(item, "requirement")}
                for title in (title for item in test.decorator_list for title in _named(item, "scenario")):
                    yield title, f"{path.name}::{test.name}", ids


def _named(tree: ast.AST, by: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == by:
            yield from (str(ast.literal_eval(value)) for value in node.args)


def test_every_scenario_is_played_by_a_test() -> None:
    assert {*SCENARIOS} - {title for title, _, _ in played()} == set()


def test_a_test_that_plays_a_scenario_names_its_requirement() -> None:
    assert [test for title, test, ids in played() if SCENARIOS[title] not in ids] == []


def test_what_plays_a_scenario_is_a_test() -> None:
    assert [test for _, test, _ in played() if "::test_" not in test] == []
