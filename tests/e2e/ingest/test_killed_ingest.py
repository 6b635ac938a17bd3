"""Ingesting can be killed anywhere: nothing is lost, nothing is there twice, nothing is left behind."""

import pytest

from tests.e2e.ingest.killed import kill_often
from toolscript.core.settings.service import Settings


@pytest.mark.nightly
@pytest.mark.requirement("KN-005")
def test_killed_while_its_files_change_it_ends_with_what_a_clean_ingest_gives(engines: Settings) -> None:
    metrics = kill_often(engines, files=10, kills=3, longest=1.0, seed=7, disturbed=5)
    assert metrics.killed == 3
    assert metrics.counts["chunk points"] == metrics.counts["chunks"] > 20
    assert metrics.differences == []
