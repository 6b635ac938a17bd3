"""Which weights a run of `toolscript-eval` judges with."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, weights_to_json
from toolscript_eval.dataset import EvalRequest
from toolscript_eval.report import weights_of

OTHER = replace(DEFAULT_WEIGHTS, meaning=0.25, word_match=9.0)


def test_without_weights_those_of_the_engine_are_judged() -> None:
    assert weights_of(EvalRequest(Path("set")), OTHER) is OTHER


def test_written_weights_are_judged_unchanged() -> None:
    assert weights_of(EvalRequest(Path("set"), weights=weights_to_json(OTHER)), DEFAULT_WEIGHTS) == OTHER


def test_invalid_weights_are_refused_before_any_query() -> None:
    with pytest.raises(InvalidRequest, match="ranking weights"):
        weights_of(EvalRequest(Path("set"), weights={"meaning": "much"}), DEFAULT_WEIGHTS)
