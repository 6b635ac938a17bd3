"""The baseline sends exactly the requests of a search to the model and the engines."""

from collections import Counter
from typing import cast

import pytest

from benchmarks.baseline import BaselinePipeline
from tests.unit.tools.search.builders import WatchedCatalog, WatchedIndex
from tests.unit.tools.search.test_hierarchical import Routed
from toolscript.core.retrieval.model import IndexQuery
from toolscript.tools.model.query import Strategy, ToolQuery

TEXTS = ("read a file", "send a letter and then read the log", "zzz qqq", "?")
TWO_WISHES = TEXTS[1]


def shape(part: str, ask: IndexQuery) -> tuple[object, ...]:
    vector = None if ask.vector is None else tuple(ask.vector.round(5).tolist())
    terms = None if ask.terms is None else tuple(sorted(ask.terms.items()))
    return part, vector, terms, ask.where, ask.limit, tuple(sorted(ask.only)), ask.fields


def asked_of(scene: Routed) -> Counter[tuple[object, ...]]:
    items, skills = cast("WatchedIndex", scene.index), cast("WatchedIndex", scene.skills)
    return Counter(
        [
            *(shape("items", ask) for ask in items.asks),
            *(shape("skills", ask) for ask in skills.asks),
            *(("fields", count, only) for count, only in items.looks),
            *(("removed", tuple(ids)) for ids in cast("WatchedCatalog", scene.catalog).removed_asks),
            *(("schemas", len(ids)) for ids in cast("WatchedCatalog", scene.catalog).schema_reads),
            *[("embedded",)] * scene.embedder.queries_embedded,
        ]
    )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("strategy", list(Strategy))
async def test_the_baseline_sends_the_requests_of_a_search_and_no_others(text: str, strategy: Strategy) -> None:
    """Run twice: neither repeats requests that are cached after the first run."""
    searched, bare = Routed(), Routed()
    search = await searched.opened()
    await bare.opened()
    pipeline = BaselinePipeline(bare.embedder, bare.index, bare.skills, bare.catalog, strategy)
    pipeline.prepare([text])
    for _ in range(2):
        await search.search(ToolQuery(text, threshold=0.0, strategy=strategy))
        assert (await pipeline.run(text)).ids
        assert asked_of(bare) == asked_of(searched)


async def test_its_stages_are_those_of_a_search() -> None:
    scene = Routed()
    await scene.opened()
    pipeline = BaselinePipeline(scene.embedder, scene.index, scene.skills, scene.catalog, Strategy.HIERARCHICAL)
    pipeline.prepare([TWO_WISHES])
    assert set((await pipeline.run(TWO_WISHES)).stages) == {"embedding", "skills", "index", "details"}
