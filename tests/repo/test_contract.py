"""The pages of docs/contract and the tests name each other, and no row is left without an answer."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import contract_pages  # noqa: E402
from contract_pages import HOWS, Row  # noqa: E402

PAGES = contract_pages.rows_by_page()
ROWS = [row for rows in PAGES.values() for row in rows]


def test_every_source_document_has_its_page_and_every_row_one_of_four_answers() -> None:
    assert {row.id[:2] for row in ROWS} == {"S0", "S1", "S2", "S3", "S4"}
    assert [row.id for row in ROWS if row.how not in HOWS] == []
    assert len(ROWS) >= 200


def test_rows_are_numbered_and_none_twice() -> None:
    for rows in PAGES.values():
        ids = [row.id for row in rows]
        assert len(set(ids)) == len(ids)


def test_every_difference_has_a_reason() -> None:
    assert [row.id for row in ROWS if row.how != "as written" and len(row.why.split()) < 4] == []


@pytest.mark.states("S0-001")
def test_every_row_that_holds_has_a_test_and_every_test_a_row() -> None:
    output = contract_pages.tests_by_statement()
    assert sum(_holds(row) for row in ROWS if row.id.startswith("S0")) > 150
    assert [row.id for row in ROWS if _holds(row) and row.id not in output] == []
    assert sorted(output.keys() - {row.id for row in ROWS}) == []


def _holds(row: Row) -> bool:
    return row.how in {"as written", "literal mode"}


def test_a_row_that_is_no_rule_is_shown_by_no_test() -> None:
    output = contract_pages.tests_by_statement()
    assert [row.id for row in ROWS if row.how == "no rule" and row.id in output] == []
