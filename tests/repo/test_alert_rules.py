"""Prometheus itself accepts the alerts, and raises them in the cases they are for."""

import shutil
import subprocess

import pytest

from tests.repo.sources import ROOT

pytestmark = [pytest.mark.requirement("DOC-007")]

FOLDER = ROOT / "deploy" / "observability"


def promtool(*words: str) -> str:
    tool = shutil.which("promtool")
    assert tool, "promtool is missing: it comes with Prometheus (on Debian the package `prometheus`; see .ci/run)"
    ran = subprocess.run(
        [tool, *words], check=False, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_prometheus_accepts_its_config_and_the_alerts() -> None:
    # The token file exists on the Prometheus machine, not here.
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", "prometheus.yml")
    assert "SUCCESS" in promtool("check", "rules", "alerts.yml")


def test_every_alert_is_raised_in_its_case_and_none_where_nothing_is_wrong() -> None:
    assert "SUCCESS" in promtool("test", "rules", "alerts_test.yml")
