"""A tenant that sends 150 searches a second does not take the service from one that sends 3."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.crowding import Sent, send_steadily
from tests.conftest import Installation
from tests.e2e import catalog_files
from tests.e2e.commands import run, serving
from tests.support.token_issuer import Issuer, an_issuer

pytestmark = [pytest.mark.requirement("OP-006"), pytest.mark.alone]
MUCH, LITTLE = 150, 3
# Twice what any machine answered that ran this: some of it is refused.
TOO_MUCH = 400
PLANS = '{"plans": {"default": {"concurrency": 12}}}'


def crowded(installation: Installation, folder: Path, seconds: float, rate: int) -> tuple[Sent, Sent, str]:
    """Return what the small tenant was answered alone and beside the other, and what that one was."""
    (folder / "plans.json").write_text(PLANS, "utf-8")
    mine = {
        **installation.environment,
        "TOOLSCRIPT_JWT_KEYS": str(an_issuer().write(folder / "keys.json")),
        "TOOLSCRIPT_JWT_ISSUER": Issuer.name,
        "TOOLSCRIPT_PLANS": str(folder / "plans.json"),
        "TOOLSCRIPT_SKILL_COPY": "true",
        "TOOLSCRIPT_DEADLINE_SECONDS": "10",
    }
    run(mine, "sync", str(catalog_files.write(folder / "items.jsonl", catalog_files.rows(200))))
    run(mine, "worker", "--drain")
    little, much = an_issuer().token("acme"), an_issuer().token("other")
    with serving(mine) as url:
        asyncio.run(send_steadily(url, little, 5, 3))
        alone = asyncio.run(send_steadily(url, little, LITTLE, seconds))
        # In a process of its own: what it does is no part of what the small tenant waits for.
        command = [sys.executable, "-m", "tests.chaos.crowding", url, much, str(rate), str(seconds + 4)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crowd:
            asyncio.run(asyncio.sleep(2))
            beside = asyncio.run(send_steadily(url, little, LITTLE, seconds))
            output, _ = crowd.communicate()
    return alone, beside, output


def test_a_tenant_that_sends_little_is_never_refused_beside_one_that_sends_too_much(
    installation: Installation, tmp_path: Path
) -> None:
    _, beside, crowd = crowded(installation, tmp_path, 8, TOO_MUCH)
    assert beside.refused == 0
    assert "503" in crowd or "429" in crowd


@pytest.mark.nightly
def test_a_tenant_that_sends_little_waits_at_most_three_times_as_long_as_alone(
    installation: Installation, tmp_path: Path
) -> None:
    alone, beside, crowd = crowded(installation, tmp_path, 60, MUCH)
    assert beside.refused == 0
    assert beside.p95 <= 3 * alone.p95, (alone.p95, beside.p95, crowd)
