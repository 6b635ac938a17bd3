"""Details of the Qdrant adapter: errors, wire format, and collections with a wrong fingerprint."""

import asyncio
import logging
from dataclasses import replace

import grpc
import numpy as np
import pytest
from grpc import StatusCode

from toolscript.core.errors import (
    IndexMissing,
    IndexRejected,
    IndexUnavailable,
    InvalidRequest,
    ModelMismatch,
    SetupError,
    ToolscriptError,
)
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import TRANSLATIONS, Qdrant, open_qdrant, translated
from toolscript.core.qdrant.index import QdrantIndex
from toolscript.core.qdrant.layout import Layout, create_request
from toolscript.core.qdrant.values import Payload, from_value, to_value
from toolscript.core.retrieval.model import IndexCard, IndexQuery, ModelCard, Point, PointVersion
from toolscript.core.retrieval.namespaced import NamespacedIndex
from toolscript.core.retrieval.ports import Index
from toolscript.core.settings.service import Settings

CARD = IndexCard(ModelCard("small", "1", 4))


def rpc_error(code: StatusCode, details: str = "said the engine") -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


@pytest.mark.parametrize("code", list(StatusCode), ids=lambda code: code.name)
def test_every_status_of_grpc_has_a_meaning(code: StatusCode) -> None:
    with pytest.raises(ToolscriptError, match="said the engine") as raised, translated():
        raise rpc_error(code)
    meaning, hint = TRANSLATIONS[code]
    assert (type(raised.value), raised.value.hint) == (meaning, hint)
    assert issubclass(meaning, IndexUnavailable | IndexRejected | SetupError)


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (StatusCode.UNAVAILABLE, IndexUnavailable),
        (StatusCode.DEADLINE_EXCEEDED, IndexUnavailable),
        (StatusCode.RESOURCE_EXHAUSTED, IndexUnavailable),
        (StatusCode.UNAUTHENTICATED, SetupError),
        (StatusCode.NOT_FOUND, IndexMissing),
        (StatusCode.INVALID_ARGUMENT, IndexRejected),
    ],
)
def test_transient_setup_and_permanent_errors_are_distinguished(
    code: StatusCode, meaning: type[ToolscriptError]
) -> None:
    assert TRANSLATIONS[code][0] is meaning


def test_a_full_disk_of_the_engine_passes_and_is_named() -> None:
    text = "Service internal error: No space left on device: WAL buffer size exceeds available disk space"
    with pytest.raises(IndexUnavailable, match="No space left") as raised, translated():
        raise rpc_error(StatusCode.INTERNAL, text)
    assert "disk of Qdrant is full" in raised.value.hint


def test_an_error_without_a_message_is_named_by_its_status() -> None:
    with pytest.raises(IndexRejected, match="INTERNAL"), translated():
        raise rpc_error(StatusCode.INTERNAL, "")


async def test_an_engine_that_is_not_there_is_unavailable() -> None:
    async with open_qdrant("http://127.0.0.1:1", 1, timeout_seconds=5) as nowhere:
        with pytest.raises(IndexUnavailable) as raised:
            await QdrantIndexes(nowhere, "items", Layout()).live()
    assert "TOOLSCRIPT_QDRANT_URL" in raised.value.hint


@pytest.mark.parametrize("url", ["127.0.0.1", "127.0.0.1:port", "ftp://host", "http://", ""])
async def test_an_invalid_address_is_rejected(url: str) -> None:
    with pytest.raises(InvalidRequest, match="TOOLSCRIPT_QDRANT_URL"):
        async with open_qdrant(url, 6334):
            pass


@pytest.mark.parametrize(
    "value", [None, True, False, 0, 2**53, "", "text", [], ["a", None, 1], {"a": {"b": [True]}}]
)
def test_values_survive_the_wire(value: object) -> None:
    assert from_value(to_value(value)) == value


def test_a_payload_makes_up_nothing() -> None:
    point = wire.PointStruct(payload={"name": to_value("a")})
    payload = Payload(point.payload)
    with pytest.raises(KeyError):
        payload["absent"]
    assert dict(payload) == {"name": "a"}
    assert len(payload) == 1


@pytest.fixture
async def engine(engines: Settings, indexes: QdrantIndexes) -> Qdrant:
    """The connection of `indexes`, for changes that other programs might make."""
    return indexes._qdrant


@pytest.mark.requirement("SK-003")
@pytest.mark.parametrize("metadata", [{"fingerprint": "of another"}, {}])
async def test_a_collection_with_another_fingerprint_is_rejected(
    engine: Qdrant, indexes: QdrantIndexes, metadata: dict[str, object]
) -> None:
    name = f"{indexes._alias}__{CARD.fingerprint}"
    await engine.collections.Create(create_request(name, CARD, metadata, Layout()))
    with pytest.raises(ModelMismatch) as refused:
        await indexes.open(CARD)
    assert "toolscript reindex" in refused.value.hint


@pytest.mark.requirement("SK-003")
async def test_a_collection_records_the_model_it_was_made_with(engine: Qdrant, indexes: QdrantIndexes) -> None:
    await indexes.create(CARD)
    name = f"{indexes._alias}__{CARD.fingerprint}"
    answer = await engine.collections.Get(wire.GetCollectionInfoRequest(collection_name=name))
    metadata = {key: from_value(value) for key, value in answer.result.config.metadata.items()}
    assert metadata["fingerprint"] == CARD.fingerprint
    assert metadata["model"] == {
        "name": "small",
        "revision": "1",
        "dimensions": 4,
        "pooling": "mean",
        "query_prefix": "",
        "passage_prefix": "",
    }
    assert answer.result.config.params.vectors_config.params_map.map["dense"].size == 4


@pytest.mark.states("S4-186")
async def test_a_vector_of_the_wrong_size_is_refused_by_the_engine(indexes: QdrantIndexes) -> None:
    await indexes.create(CARD)
    index = await indexes.open(CARD)
    with pytest.raises(IndexRejected):
        await index.search(IndexQuery(vector=np.ones(5, dtype=np.float32)))


def sampled(index: Index) -> QdrantIndex:
    """Return the adapter's index, with a sample so old that the next search takes another."""
    assert isinstance(index, QdrantIndex)
    index._sampled_at = float("-inf")
    return index


def point(id_: int, *terms: int) -> Point:
    return Point(id_, 1, np.eye(4, dtype=np.float32)[0], dict.fromkeys(terms, 1.0), {"type": "tool"})


async def test_a_newer_sample_is_taken_while_the_old_one_is_used(indexes: QdrantIndexes) -> None:
    await indexes.create(CARD)
    index = await indexes.open(CARD)
    ask = IndexQuery(terms={7: 1.0})
    await index.put([point(1, 7)])
    assert (await index.search(ask)).shares == {7: 1.0}
    await index.put([point(2, 8)])
    before = sampled(index)._sampling
    answers = await asyncio.gather(*(index.search(ask) for _ in range(3)))
    assert [answer.shares for answer in answers] == [{7: 1.0}] * 3
    sampling = sampled(index)._sampling
    assert sampling is not before
    assert sampling is not None
    await sampling
    assert (await index.search(ask)).shares == {7: 0.5}


async def test_concurrent_searches_take_one_sample(indexes: QdrantIndexes) -> None:
    await indexes.create(CARD)
    index = await indexes.open(CARD)
    await index.put([point(1, 7)])
    await index.search(IndexQuery(terms={7: 1.0}))
    stale = sampled(index)
    begun = []
    for _ in range(3):
        await stale._keep_sampled()
        begun.append(stale._sampling)
    assert len(set(begun)) == 1
    assert begun[0] is not None
    await begun[0]


async def test_a_sample_that_cannot_be_taken_leaves_the_old_one(
    indexes: QdrantIndexes, caplog: pytest.LogCaptureFixture
) -> None:
    await indexes.create(CARD)
    index = await indexes.open(CARD)
    await index.put([point(1, 7)])
    await index.search(IndexQuery(terms={7: 1.0}))
    sample = sampled(index)._sample
    await indexes.drop(CARD.fingerprint)
    with caplog.at_level(logging.WARNING):
        await sampled(index)._sample_again()
    assert sampled(index)._sample is sample
    assert [line.message for line in caplog.records] == ["no new sample of the index"]


async def test_a_collection_dropped_by_others_is_a_setup_error(indexes: QdrantIndexes) -> None:
    await indexes.create(CARD)
    index = await indexes.open(CARD)
    await indexes.drop(CARD.fingerprint)
    with pytest.raises(SetupError) as raised:
        await index.count()
    assert "toolscript worker" in raised.value.hint


@pytest.fixture
async def blue(indexes: QdrantIndexes, engine: Qdrant) -> NamespacedIndex:
    """An index version with an open namespace whose collection was dropped."""
    await indexes.create(CARD)
    index = await NamespacedIndex.open(indexes, CARD)
    await index.put([replace(point(1, 7), namespace="blue")])
    assert await words_in(index) == [1]
    name = f"{indexes._name(CARD.fingerprint)}.blue"
    await engine.collections.Delete(wire.DeleteCollection(collection_name=name))
    return index


async def words_in(index: NamespacedIndex) -> list[int]:
    found = await index.within(("blue",)).search(IndexQuery(terms={7: 1.0}))
    return [hit.id for hit in found.words or ()]


@pytest.mark.requirement("AP-005")
async def test_a_namespace_without_its_collection_is_empty(blue: NamespacedIndex) -> None:
    assert await words_in(blue) == []
    assert await blue.within(("blue", "default")).fields([1]) == {}


@pytest.mark.requirement("AP-005")
async def test_the_collection_of_a_namespace_is_made_anew_for_its_next_point(blue: NamespacedIndex) -> None:
    await blue.put([replace(point(2, 7), namespace="blue")])
    assert await words_in(blue) == [2]


@pytest.mark.requirement("AP-005")
async def test_removals_from_a_namespace_without_its_collection_are_done(blue: NamespacedIndex) -> None:
    await blue.remove([PointVersion(1, 1, "blue"), PointVersion(2, 1)])
    assert await blue.count() == 0


@pytest.mark.requirement("AP-005")
async def test_a_namespace_of_a_dropped_index_version_is_a_setup_error(
    blue: NamespacedIndex, indexes: QdrantIndexes
) -> None:
    await blue.put([replace(point(2, 7), namespace="blue")])
    await indexes.drop(CARD.fingerprint)
    with pytest.raises(SetupError):
        await words_in(blue)
