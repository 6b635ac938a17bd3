"""Load far above capacity is shed, and leaves nothing behind. `python -m tests.chaos.bursts` does more of it."""

import pytest

from tests.chaos.bursts import REFUSED, fill, measured
from tests.conftest import Installation

# Thresholds for a machine that may be busy.
MIN_GOODPUT = 0.4


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.requirement("API-004", "OP-006")
def test_bursts_at_three_times_capacity_are_refused_in_part_and_answered_in_part_and_never_emptily(
    installation: Installation,
) -> None:
    fill(installation.environment, 160)
    report = measured(installation.environment, bursts=2, seconds=3.0)
    assert set(report.outcomes) <= {"whole", "degraded", REFUSED}, str(report)
    assert report.outcomes[REFUSED] > 0, str(report)
    assert report.goodput_share >= MIN_GOODPUT, str(report)
    assert report.refused_within_10_ms >= 0.9, str(report)
    assert report.pools_are_whole, str(report)
    assert report.back_ratio <= 3.0, str(report)
