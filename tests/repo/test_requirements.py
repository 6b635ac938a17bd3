"""The requirements and the tests name each other."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.requirements import ALL

TESTS = Path(__file__).parents[1]
# How many ids each family has.
SOURCE_DOCUMENTS = {"BR": 10, "EC": 9, "API": 4, "SLA": 1, "SK": 11, "DOC": 7, "KN": 6, "TS": 11}
BEYOND_THEM = {
    "TR": 4,
    "GW": 7,
    "FI": 2,
    "SC": 2,
    "VE": 2,
    "LE": 3,
    "CT": 2,
    "CO": 2,
    "AP": 5,
    "ID": 4,
    "OP": 6,
    "RE": 3,
}
FAMILIES = SOURCE_DOCUMENTS | BEYOND_THEM


@cache
def ids_named_by_tests() -> dict[str, set[str]]:
    """Return the ids in `pytest.mark.requirement(...)`, of tests or whole files, with the files that name them."""
    named: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for id_ in _ids(ast.parse(path.read_text("utf-8"))):
            named.setdefault(id_, set()).add(str(path.relative_to(TESTS)))
    return named


def _ids(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            yield from (str(ast.literal_eval(value)) for value in node.args)


def test_every_requirement_has_its_place_in_the_manifest() -> None:
    expected = {
        f"{family}-{number:03}" for family, maximum in FAMILIES.items() for number in range(1, maximum + 1)
    }
    assert sorted(requirement.id for requirement in ALL) == sorted(expected)


def test_every_id_that_a_test_names_exists() -> None:
    existing = {requirement.id for requirement in ALL}
    assert {id_: where for id_, where in ids_named_by_tests().items() if id_ not in existing} == {}


def test_every_requirement_is_tested_or_deferred_with_a_reason() -> None:
    named = ids_named_by_tests()
    assert [item.id for item in ALL if not item.deferred and item.id not in named] == []


def test_a_deferred_requirement_is_named_by_no_test() -> None:
    named = ids_named_by_tests()
    assert {item.id: named[item.id] for item in ALL if item.deferred and item.id in named} == {}


def test_a_requirement_is_deferred_or_built_in_part_but_not_both() -> None:
    assert [item.id for item in ALL if item.deferred and item.missing] == []
