"""Ingestion can be killed anywhere: no loss, no duplicates, no leftovers."""

import pytest

from tests.e2e.ingest.killed import kill_often
from toolscript.core.settings.service import Settings


@pytest.mark.nightly
@pytest.mark.requirement("KN-005")
def test_a_killed_ingest_of_changing_files_ends_like_a_clean_one(engines: Settings) -> None:
    metrics = kill_often(engines, files=10, kills=3, longest=1.0, seed=7, disturbed=5)
    assert metrics.killed == 3
    assert metrics.counts["chunk points"] == metrics.counts["chunks"] > 20
    assert metrics.differences == []
