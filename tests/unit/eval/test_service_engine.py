"""The service is judged in a temporary collection that follows the loaded items."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from toolscript.core.errors import EmbedderUnavailable, SetupError
from toolscript.core.item_text import embedded_views
from toolscript.core.items import Item, ItemKind
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.retrieval.model import IndexCard, Vector
from toolscript.core.retrieval.ports import Embedder, Indexes
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, PARTS, RankingWeights
from toolscript.testing import HashEmbedder, MemoryIndexes
from toolscript_eval.dataset import Dataset, DatasetQuery
from toolscript_eval.judging import judge
from toolscript_eval.metrics import DEPTH
from toolscript_eval.service import Collections, ServiceEngine, service_engine

ITEMS = [
    Item("read", ItemKind.TOOL, "files", "read_file", "Read the contents of a file"),
    Item("mail", ItemKind.TOOL, "mail", "send_mail", "Send an electronic letter"),
    Item("doc", ItemKind.RESOURCE, "set", "Whales", "Whales sing in the sea"),
    *(
        Item(f"t{number}", ItemKind.TOOL, "many", f"tool_{number}", f"Does thing number {number}")
        for number in range(20)
    ),
]
READ = "read the contents of a file"


def opened(indexes: Indexes, embedder: Embedder) -> AbstractAsyncContextManager[ServiceEngine]:
    return service_engine(Collections(indexes), embedder)


@pytest.fixture
async def engine() -> AsyncIterator[ServiceEngine]:
    async with opened(MemoryIndexes(), HashEmbedder()) as opened_engine:
        yield opened_engine


async def test_tools_and_documents_are_found_by_their_keys(engine: ServiceEngine) -> None:
    await engine.load(ITEMS)
    answer = await engine.answer(READ)
    assert answer.keys[0] == "read"
    assert answer.confidence is not None
    assert answer.good_match
    assert set(answer.stages) == {"embedding", "engine", "ranking", "total"}
    assert sum(answer.stages.values()) <= 2 * answer.stages["total"]
    assert (await engine.answer("whales sing")).keys[0] == "doc"
    assert len((await engine.answer("does a thing")).keys) == DEPTH


@pytest.mark.parametrize("part", PARTS)
async def test_other_weights_rank_the_same_points(engine: ServiceEngine, part: str) -> None:
    await engine.load(ITEMS)
    other = engine.with_weights(DEFAULT_WEIGHTS.without(part))
    with pytest.raises(SetupError):
        await other.answer(READ)
    await other.load(ITEMS)
    assert (await other.answer(READ)).keys[0] == (await engine.answer(READ)).keys[0] == "read"


async def test_the_weights_decide_which_item_is_first(engine: ServiceEngine) -> None:
    twins = [
        Item("said", ItemKind.TOOL, "notes", "jot", "Delete a note. Delete an old note. Delete it"),
        Item("named", ItemKind.TOOL, "notes", "delete_note", "Takes it away"),
    ]
    by_name = RankingWeights(1.0, 0.0, coverage=0.0, word_match=0.0, name=50.0, action=0.0, subject=0.0)
    for weights, first in ((by_name, "named"), (by_name.without("name"), "said")):
        other = engine.with_weights(weights)
        await other.load([*ITEMS, *twins])
        assert (await other.answer("delete an old note")).keys[0] == first


async def test_removed_items_are_deleted_and_returning_items_are_put(engine: ServiceEngine) -> None:
    await engine.load(ITEMS)
    await engine.load([item for item in ITEMS if item.key != "read"])
    assert "read" not in (await engine.answer(READ)).keys
    await engine.load([*ITEMS, Item("late", ItemKind.TOOL, "late", "fly", "Fly to the moon")])
    assert (await engine.answer(READ)).keys[0] == "read"
    assert (await engine.answer("fly to the moon")).keys[0] == "late"


async def test_only_new_items_are_put() -> None:
    embedder = HashEmbedder()
    async with opened(MemoryIndexes(), embedder) as engine:
        await engine.load(ITEMS[:20])
        before = embedder.texts_embedded
        await engine.load(ITEMS)
        new = {text for item in ITEMS[20:] for _, text in embedded_views(item)}
        assert embedder.texts_embedded == before + len(new)


async def test_the_collection_is_gone_whatever_happens() -> None:
    indexes, embedder = MemoryIndexes(), HashEmbedder()

    async def fail_in_the_middle() -> None:
        async with opened(indexes, embedder) as engine:
            await engine.load(ITEMS)
            raise EmbedderUnavailable("in the middle of it")

    with pytest.raises(EmbedderUnavailable):
        await fail_in_the_middle()
    with pytest.raises(SetupError):
        await indexes.open(IndexCard(embedder.model))


async def test_an_answer_without_a_part_ends_the_measurement() -> None:
    class Failing(HashEmbedder):
        async def embed_query(self, text: str) -> Vector:
            raise EmbedderUnavailable("the model is away")

    async with opened(MemoryIndexes(), Failing()) as engine:
        with pytest.raises(SetupError):
            await engine.answer(READ)
        await engine.load(ITEMS)
        with pytest.raises(SetupError, match="embedding"):
            await engine.answer(READ)


async def test_the_service_is_judged_on_the_real_engine(indexes: QdrantIndexes) -> None:
    queries = [DatasetQuery("1", READ, {"read": 1}), DatasetQuery("2", "send an electronic letter", {"mail": 1})]
    embedder = HashEmbedder()
    async with opened(indexes, embedder) as engine:
        report = await judge(engine, Dataset("small", ITEMS, queries), model="hash")
        measures = report.systems[0].measures
        assert (report.engine, measures["hit@1"].value) == ("service", 1.0)
        assert measures["without_gold_auroc"].value == 1.0, "they were not found when they were gone"
    with pytest.raises(SetupError):
        await indexes.open(IndexCard(embedder.model))
