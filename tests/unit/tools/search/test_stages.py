"""How long the stages of a request took."""

import time

import pytest

from toolscript.core.retrieval.timings import Stages


def test_a_stage_took_what_passed_since_the_last_one_and_twice_is_both_times() -> None:
    stages = Stages()
    for stage in ("a", "b", "a"):
        time.sleep(0.005)
        stages.end(stage)
    assert stages.spent["a"] >= 10
    assert 5 <= stages.spent["b"] < stages.spent["a"] + stages.spent["b"]
    assert stages.total() >= sum(stages.spent.values())


def test_a_stage_that_never_came_took_nothing() -> None:
    assert Stages().spent["schemas"] == pytest.approx(0.0)
