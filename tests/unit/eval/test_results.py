"""Which weights a run of `toolscript eval` judges with."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, weights_to_json
from toolscript.eval.dataset import EvalRequest
from toolscript.eval.report import weights_of

OTHER = replace(DEFAULT_WEIGHTS, meaning=0.25, said=9.0)


def test_without_a_recipe_the_engines_own_is_judged() -> None:
    assert weights_of(EvalRequest(Path("set")), OTHER) is OTHER


def test_a_recipe_that_was_written_is_judged_as_it_is() -> None:
    assert weights_of(EvalRequest(Path("set"), weights=weights_to_json(OTHER)), DEFAULT_WEIGHTS) == OTHER


def test_what_is_no_recipe_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidRequest, match="recipe"):
        weights_of(EvalRequest(Path("set"), weights={"meaning": "much"}), DEFAULT_WEIGHTS)
