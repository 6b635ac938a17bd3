"""Stages of a search in two indexes: routed searches are counted, degraded ones are refused."""

import pytest

from benchmarks.at_scale import WARM_UP, measure_stages
from tests.unit.tools.search.builders import FailingEmbedder
from tests.unit.tools.search.test_hierarchical import Routed
from toolscript.core.errors import EmbedderUnavailable, SetupError

TEXTS = ["read a file"] * WARM_UP + ["read a file", "send a letter", "write a file"]


async def test_searches_that_were_really_routed_are_counted_in_each_index() -> None:
    unskilled = await Routed(texts={}).opened()
    done = await measure_stages(unskilled, await Routed().opened(), TEXTS)
    assert (done.routed, done.searches) == ({"small": 0, "large": 3}, 3)
    assert set(done.stages) == {"skills", "items", "both"}
    assert done.stages["both"].large.count == 3


async def test_a_degraded_search_is_refused() -> None:
    degraded = await Routed(embedder=FailingEmbedder(EmbedderUnavailable("down"))).opened()
    with pytest.raises(SetupError, match="without embedding"):
        await measure_stages(await Routed().opened(), degraded, TEXTS)
