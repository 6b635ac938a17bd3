"""S0, what is asked of tests themselves."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "scripts"))
import contract_pages  # noqa: E402


@pytest.mark.states("S0-001")
def test_every_rule_that_holds_has_a_test() -> None:
    rows = contract_pages.rows_by_page()[contract_pages.PAGES / "tool-search.md"]
    holding = [row.id for row in rows if row.how in {"as written", "literal mode"}]
    assert len(holding) > 150
    shown = contract_pages.tests_by_statement()
    assert [id_ for id_ in holding if id_ not in shown] == []
