"""Vectors of items: each text is embedded once, and no vector outlives its item."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from toolscript.core.embedding.items import ItemVectors, embed_items, vector_hash
from toolscript.core.item_text import NAME_SHARE, SERVER_SHARE, embedded_views
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import Vector
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("TS-007")

ITEM = Item("k", ItemKind.TOOL, "files", "read", "Read it", "About", {"a": 1}, {"b": 2}, {"c": 3})
OTHER = Item("o", ItemKind.TOOL, "mail", "send", "Send it")
PROMPT = replace(ITEM, kind=ItemKind.PROMPT, description="Another")


class VectorStore:
    """Stores vectors in store, and records its reads."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, Vector]] = {}
        self.reads: list[list[str]] = []
        self.absent: Collection[str] = ()

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]:
        self.reads.append(list(hashes))
        by_hash = dict(self.kept.values())
        return {key: by_hash[key] for key in hashes if key in by_hash}

    def remember(self, tools: Mapping[str, tuple[str, Vector]], absent: Collection[str] = ()) -> None:
        self.kept = dict(tools)
        self.absent = absent


def hashes_of(items: Sequence[Item]) -> list[str]:
    return [vector_hash(item) for item in items]


async def embedded(vectors: ItemVectors, items: Sequence[Item]) -> list[str]:
    hashes = hashes_of(items)
    vectors.recall(hashes)
    await vectors.embed(vectors.missing(items, hashes))
    return hashes


@pytest.mark.parametrize(
    "changed",
    [
        replace(ITEM, server="other"),
        replace(ITEM, name="other"),
        replace(ITEM, description="other"),
        replace(ITEM, input_schema={"a": 2}),
        replace(ITEM, input_schema=None),
        replace(ITEM, output_schema={"b": 3}),
    ],
)
def test_a_hash_changes_with_the_names_the_description_and_the_schemas(changed: Item) -> None:
    assert vector_hash(changed) != vector_hash(ITEM)


@pytest.mark.parametrize(
    "same",
    [
        replace(ITEM, key="other"),
        replace(ITEM, server_description="other"),
        replace(ITEM, annotations=None),
        replace(ITEM, input_schema=dict(reversed({"a": 1}.items()))),
    ],
)
def test_a_hash_stays_when_nothing_that_is_hashed_changes(same: Item) -> None:
    assert vector_hash(same) == vector_hash(ITEM)


def test_the_order_of_keys_in_a_schema_does_not_change_the_hash() -> None:
    first, second = replace(ITEM, input_schema={"a": 1, "b": 2}), replace(ITEM, input_schema={"b": 2, "a": 1})
    assert vector_hash(first) == vector_hash(second)


async def test_rows_are_the_vectors_of_the_items_and_zeros_until_then() -> None:
    embedder = HashEmbedder()
    vectors = ItemVectors(embedder, None)
    hashes = hashes_of([ITEM, OTHER])
    assert not vectors.matrix(hashes).any()
    await vectors.embed({hashes[1]: OTHER})
    rows = vectors.matrix(hashes)
    assert rows.shape == (2, embedder.model.dimensions)
    assert rows.dtype == np.float32
    assert not rows[0].any()
    np.testing.assert_array_equal(rows[1], (await embed_items(embedder, [OTHER]))[0])


async def test_a_vector_is_mixed_from_its_views_and_of_unit_length() -> None:
    embedder = HashEmbedder()
    text, name, server = await embedder.embed_texts(["send. Send it", "send", "mail"])
    expected = text + NAME_SHARE * name + SERVER_SHARE * server
    (vector,) = await embed_items(embedder, [OTHER])
    assert [text for _, text in embedded_views(OTHER)] == ["send. Send it", "send", "mail"]
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), rtol=1e-5)
    assert vector.dtype == np.float32


async def test_a_text_that_several_items_share_is_embedded_once() -> None:
    embedder = HashEmbedder()
    rows = await embed_items(embedder, [ITEM, replace(ITEM, server="elsewhere"), ITEM])
    assert embedder.texts_embedded == len({"the text", "the name", "files", "elsewhere"})
    np.testing.assert_array_equal(rows[0], rows[2])
    assert not np.allclose(rows[0], rows[1])


async def test_the_vector_of_an_item_does_not_depend_on_its_batch() -> None:
    embedder = HashEmbedder()
    together = await embed_items(embedder, [ITEM, OTHER, PROMPT])
    alone = [(await embed_items(embedder, [item]))[0] for item in (ITEM, OTHER, PROMPT)]
    np.testing.assert_array_equal(together, alone)


async def test_no_items_have_no_vectors() -> None:
    embedder = HashEmbedder()
    assert (await embed_items(embedder, [])).shape == (0, embedder.model.dimensions)
    assert embedder.texts_embedded == 0


async def test_only_missing_vectors_are_embedded() -> None:
    embedder = HashEmbedder()
    vectors = ItemVectors(embedder, None)
    await embedded(vectors, [ITEM])
    before = embedder.texts_embedded
    hashes = hashes_of([ITEM, OTHER])
    assert vectors.missing([ITEM, OTHER], hashes) == {hashes[1]: OTHER}
    await embedded(vectors, [ITEM, OTHER])
    assert embedder.texts_embedded == before + len(embedded_views(OTHER))


async def test_identical_items_are_embedded_once() -> None:
    embedder = HashEmbedder()
    vectors = ItemVectors(embedder, None)
    twins = [ITEM, replace(ITEM, key="elsewhere")]
    hashes = await embedded(vectors, twins)
    assert embedder.texts_embedded == len(embedded_views(ITEM))
    assert vectors.matrix(hashes).any(axis=1).all()


async def test_stored_vectors_are_loaded_at_the_next_start() -> None:
    store, embedder = VectorStore(), HashEmbedder()
    first = ItemVectors(embedder, store)
    hashes = await embedded(first, [ITEM, OTHER, PROMPT])
    first.keep([ITEM, OTHER, PROMPT], hashes)
    assert sorted(store.kept) == ["files__read", "mail__send", "prompt:files__read"]
    before = embedder.texts_embedded
    second = ItemVectors(embedder, store)
    second.recall(hashes)
    np.testing.assert_array_equal(second.matrix(hashes), first.matrix(hashes))
    assert embedder.texts_embedded == before


async def test_only_unknown_vectors_are_read_from_the_cache() -> None:
    store = VectorStore()
    vectors = ItemVectors(HashEmbedder(), store)
    hashes = await embedded(vectors, [ITEM])
    vectors.recall(hashes)
    assert store.reads == [hashes]
    vectors.recall([*hashes, "new"])
    assert store.reads[1:] == [["new"]]


async def test_vectors_of_removed_items_are_dropped() -> None:
    store = VectorStore()
    vectors = ItemVectors(HashEmbedder(), store)
    both = await embedded(vectors, [ITEM, OTHER])
    vectors.keep([OTHER], both[1:], absent=["away"])
    assert (list(store.kept), store.absent) == (["mail__send"], ["away"])
    assert not vectors.matrix(both)[0].any()
    assert vectors.matrix(both)[1].any()


async def test_vectors_that_are_not_embedded_yet_are_not_stored() -> None:
    store = VectorStore()
    vectors = ItemVectors(HashEmbedder(), store)
    both = hashes_of([ITEM, OTHER])
    await vectors.embed({both[0]: ITEM})
    vectors.keep([ITEM, OTHER], both)
    assert list(store.kept) == ["files__read"]


async def test_vectors_can_be_copied_from_another_set() -> None:
    embedder = HashEmbedder()
    first = ItemVectors(embedder, None)
    hashes = await embedded(first, [ITEM])
    second = ItemVectors(embedder, VectorStore(), first.known)
    assert second.missing([ITEM], hashes) == {}
