"""Workers killed under random operations end like a plain model. At any size: tests/chaos/fire/run.py."""

import pytest

from tests.chaos.fire.run import on_fire
from tests.conftest import Installation

SEED = 20261115


@pytest.mark.nightly
@pytest.mark.requirement("SK-006", "SK-007", "SK-008", "SK-009")
async def test_catalog_index_and_skills_equal_the_model_whichever_worker_was_killed(
    installation: Installation,
) -> None:
    async with on_fire(installation.settings, installation.environment, workers=2, seed=SEED, items=60) as fire:
        for _ in range(3):
            await fire.round(150, kills=1)
        assert await fire.differences() == []
    assert {"add", "change", "remove", "reassign", "approve", "merge", "deactivate"} <= fire.operations.done.keys()
