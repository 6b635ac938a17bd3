"""Timings of the stages of a request."""

import time

import pytest

from toolscript.core.retrieval.timings import Stages


def test_a_stage_takes_the_time_since_the_last_one_and_repeated_stages_add_up() -> None:
    stages = Stages()
    for stage in ("a", "b", "a"):
        time.sleep(0.005)
        stages.end(stage)
    assert stages.spent["a"] >= 10
    assert 5 <= stages.spent["b"] < stages.spent["a"] + stages.spent["b"]
    assert stages.total() >= sum(stages.spent.values())


def test_a_stage_that_did_not_run_took_no_time() -> None:
    assert Stages().spent["schemas"] == pytest.approx(0.0)
