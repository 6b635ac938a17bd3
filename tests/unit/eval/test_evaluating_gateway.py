"""A gateway is judged as it searches: over the loaded items, dense and sparse, with its own confidence."""

from collections.abc import Sequence

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, tools
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, PARTS
from toolscript.gateway.model import LocalQuery
from toolscript.testing import HashEmbedder
from toolscript_eval.baselines import baselines_of
from toolscript_eval.dataset import Dataset, DatasetQuery
from toolscript_eval.gateway import GatewayEngine, PreparedItems, ablated_searches, gateway_search
from toolscript_eval.judging import judge

pytestmark = pytest.mark.slow

READ, WRITE = (item.key for item in FILES)
ITEMS: Sequence[Item] = [*FILES, *MAIL, *tools("many", 30)]


def engine_over(embedder: Embedder) -> GatewayEngine:
    return GatewayEngine(gateway_search(DEFAULT_WEIGHTS), embedder, PreparedItems(embedder))


async def test_an_answer_is_that_of_the_gateways_search() -> None:
    embedder = HashEmbedder()
    search = gateway_search(DEFAULT_WEIGHTS)
    engine = GatewayEngine(search, embedder, PreparedItems(embedder))
    await engine.load(ITEMS)
    judged = await engine.answer("read the contents of a file")
    answer = await search.search(LocalQuery("read the contents of a file", 10, 0.0, None))
    assert judged.keys == tuple(hit.item.key for hit in answer.hits)
    assert (judged.keys[0], len(judged.keys)) == (READ, 10)
    assert judged.confidence == answer.hits[0].parts.probability
    shown = await search.search(LocalQuery("read the contents of a file", kind=None))
    assert judged.shown is not None
    assert judged.shown.keys == {hit.item.key for hit in shown.hits}
    assert (judged.shown.good_match, judged.shown.confidence) == (True, shown.hits[0].confidence)
    assert judged.good_match
    assert set(judged.stages) == {"embedding", "engine", "ranking", "total"}
    assert 0 < judged.stages["embedding"] < judged.stages["total"]


async def test_an_unanswerable_query_is_no_good_match() -> None:
    engine = engine_over(HashEmbedder())
    await engine.load(ITEMS)
    assert not (await engine.answer("xqzv blorp")).good_match


async def test_resources_are_found_too() -> None:
    engine = engine_over(HashEmbedder())
    await engine.load([*ITEMS, Item("doc", ItemKind.RESOURCE, "set", "Whales", "Whales sing in the sea")])
    assert (await engine.answer("whales sing")).keys[0] == "doc"


async def test_unloaded_items_are_not_found_and_nothing_is_embedded_twice() -> None:
    embedder = HashEmbedder()
    engine = engine_over(embedder)
    await engine.load(ITEMS)
    embedded = embedder.texts_embedded
    await engine.load([item for item in ITEMS if item.key != READ])
    assert READ not in (await engine.answer("read the contents of a file")).keys
    await engine.load(ITEMS)
    assert (await engine.answer("read the contents of a file")).keys[0] == READ
    assert embedder.texts_embedded == embedded


async def test_an_empty_catalog_has_no_answer() -> None:
    engine = engine_over(HashEmbedder())
    await engine.load([])
    answer = await engine.answer("read a file")
    assert (answer.keys, answer.confidence, answer.good_match) == ((), None, False)


async def test_a_model_that_fails_ends_the_measurement() -> None:
    class Failing(HashEmbedder):
        is_away = False

        async def embed_query(self, text: str) -> Vector:
            if self.is_away:
                raise EmbedderUnavailable("the model is away")
            return await super().embed_query(text)

    embedder = Failing()
    engine = engine_over(embedder)
    await engine.load(ITEMS)
    embedder.is_away = True
    with pytest.raises(EmbedderUnavailable, match="the model is away"):
        await engine.answer("read a file")
    with pytest.raises(EmbedderUnavailable, match="the model is away"):
        await engine_over(embedder).load(ITEMS)


async def test_a_part_that_is_off_answers_otherwise() -> None:
    embedder = HashEmbedder()
    prepared = PreparedItems(embedder)
    parts = {
        name: GatewayEngine(search, embedder, prepared)
        for name, search in ablated_searches(DEFAULT_WEIGHTS).items()
    }
    whole = engine_over(embedder)
    assert set(parts) == {*PARTS, "general tools"}
    shell = Item("shell", ItemKind.TOOL, "terminal", "run_shell_command", "Runs it")
    for engine in (whole, *parts.values()):
        await engine.load([*ITEMS, shell])
    general, plain = "git commit my changes", "number of a text file"
    assert (await whole.answer(general)).keys[0] == "shell"
    assert (await parts["general tools"].answer(general)).keys[0] != "shell"
    assert (await parts["words"].answer(plain)).keys != (await parts["meaning"].answer(plain)).keys


async def test_a_gateway_is_judged_beside_the_baselines() -> None:
    queries = [
        DatasetQuery("1", "read the contents of a file", {READ: 1}),
        DatasetQuery("2", "write text into a file", {WRITE: 1}),
        DatasetQuery("3", "xqzv blorp"),
    ]
    judged, embedder = Dataset("small", ITEMS, queries), HashEmbedder()
    report = await judge(
        engine_over(embedder), judged, model="hash", baselines=await baselines_of(judged, embedder)
    )
    assert [system.system for system in report.systems] == [
        "gateway",
        "BM25",
        "dense",
        "RRF",
        "z-score",
        "native-bm25",
        "native-regex",
    ]
    assert report.systems[0].measures["hit@1"].value == 1.0
    assert report.systems[0].measures["without_gold_auroc"].value > 0.5
    assert report.systems[0].measures["nothing_fits_auroc"].value == 1.0
