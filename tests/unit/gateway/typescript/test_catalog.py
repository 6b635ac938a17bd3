"""Clients of real tools compile. The whole catalog: `python -m tests.unit.gateway.typescript.check_all FILE`."""

from itertools import islice

import pytest

from tests.unit.gateway.typescript.check_all import Checked, check
from tests.unit.gateway.typescript.tools import CATALOG, catalog_tools, tool

pytestmark = [pytest.mark.requirement("TS-009"), pytest.mark.slow]


@pytest.mark.skipif(not CATALOG.exists(), reason="the catalog of real tools is not on this machine")
def test_clients_of_real_tools_compile_and_are_less_than_half_as_long_when_compact() -> None:
    some, checked = list(islice(catalog_tools(CATALOG), 0, None, 80)), Checked()
    assert len(some) > 400
    assert check(some, checked) == []
    assert checked.compact_bytes < checked.full_bytes / 2


def test_the_check_reports_compile_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = "export const tools: string = 1;"
    monkeypatch.setattr("tests.unit.gateway.typescript.check_all.typescript_module", lambda *_, **__: broken)
    assert len(check([tool()], Checked())) == 2
