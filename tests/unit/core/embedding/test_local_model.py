"""ONNX models from folders: which are accepted or refused, and their prefixes."""

import asyncio
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.embedding.embedder import BATCH, WINDOW, LocalEmbedder, batches
from toolscript.core.embedding.fastembed_models import known_name
from toolscript.core.errors import EmbedderUnavailable, ModelNotFound, ModelUnknown

BGE_PREFIX = "Represent this sentence for searching relevant passages: "


@pytest.fixture(scope="session")
def weights(model_folder: str) -> Path:
    """The folder of a real model, wherever it is."""
    if Path(model_folder).is_dir():
        return Path(model_folder)
    return Path(LocalEmbedder(model_folder)._engine.model._model_dir)  # type: ignore[attr-defined]


def linked(weights: Path, folder: Path) -> Path:
    """The same model under another name."""
    folder.mkdir()
    for file in weights.iterdir():
        (folder / file.name).symlink_to(file)
    return folder


def prefixes(weights: Path, folder: Path) -> tuple[str, str]:
    card = LocalEmbedder(str(linked(weights, folder)), threads=1).model
    return card.query_prefix, card.passage_prefix


@pytest.mark.requirement("SK-003")
def test_a_folder_is_identified_by_its_name_its_weights_and_its_size(weights: Path, tmp_path: Path) -> None:
    first = LocalEmbedder(str(linked(weights, tmp_path / "mini")), threads=1).model
    again = LocalEmbedder(str(tmp_path / "mini"), threads=1).model
    assert first == again
    assert (first.name, first.dimensions, first.pooling) == ("mini", 384, "mean")
    assert len(first.revision) == 16


async def test_a_bge_model_has_its_prefix_before_queries_and_not_before_passages(
    weights: Path, tmp_path: Path
) -> None:
    bge = LocalEmbedder(str(linked(weights, tmp_path / "bge-tiny-en")), threads=1)
    assert (bge.model.query_prefix, bge.model.passage_prefix, bge.model.pooling) == (BGE_PREFIX, "", "cls")
    query = await bge.embed_query("read a file")
    plain = await bge.embed_texts(["read a file"])
    prefixed = await bge.embed_texts([BGE_PREFIX + "read a file"])
    np.testing.assert_allclose(query, prefixed[0], atol=1e-5)
    assert float(query @ plain[0]) < 0.99


def test_an_e5_model_has_prefixes_before_both_and_others_have_none(weights: Path, tmp_path: Path) -> None:
    assert prefixes(weights, tmp_path / "multilingual-e5-tiny") == ("query: ", "passage: ")
    assert prefixes(weights, tmp_path / "all-MiniLM") == ("", "")


def test_the_folder_defines_the_pooling(weights: Path, tmp_path: Path) -> None:
    folder = linked(weights, tmp_path / "says-cls")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert LocalEmbedder(str(folder), threads=1).model.pooling == "cls"


async def test_a_folder_as_downloaded_with_the_quantized_weights_alone_is_accepted(
    weights: Path, tmp_path: Path
) -> None:
    folder = linked(weights, tmp_path / "multilingual-e5-tiny")
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    embedder = LocalEmbedder(str(folder), threads=1)
    assert (await embedder.embed_query("lies die Datei")).shape == (384,)
    embedder.close()


@pytest.mark.parametrize("name", ["multilingual", "Xenova/paraphrase-multilingual-MiniLM-L12-v2"])
def test_the_multilingual_model_has_a_short_name(name: str) -> None:
    assert known_name(name) == "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


@pytest.mark.states("S4-100")
@pytest.mark.parametrize("name", ["absent-model", "/nowhere/at/all", "some/unknown-model"])
def test_an_unknown_model_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ModelNotFound) as refused:
        LocalEmbedder(name)
    known_models = refused.value.details["known_models"]
    assert isinstance(known_models, list)
    assert "sentence-transformers/all-MiniLM-L6-v2" in known_models


def test_a_folder_without_a_model_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no ONNX model") as refused:
        LocalEmbedder(str(tmp_path))
    assert "model.onnx" in refused.value.hint


@pytest.mark.parametrize("broken", ["config.json", "tokenizer.json", "model.onnx"])
def test_a_folder_with_a_broken_file_is_refused(weights: Path, tmp_path: Path, broken: str) -> None:
    folder = linked(weights, tmp_path / f"broken-{broken}")
    (folder / broken).unlink()
    (folder / broken).write_text("this is not it")
    with pytest.raises(ModelNotFound, match="cannot be loaded"):
        LocalEmbedder(str(folder), threads=1)


async def test_a_closed_embedder_is_unavailable(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), threads=1)
    embedder.close()
    with pytest.raises(EmbedderUnavailable):
        await embedder.embed_query("read")


async def test_an_overloaded_embedder_fails_at_once(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), max_waiting=2)
    requests = [asyncio.ensure_future(embedder.embed_query(f"query {number}")) for number in range(6)]
    answers = await asyncio.gather(*requests, return_exceptions=True)
    embedder.close()
    assert sum(isinstance(answer, EmbedderUnavailable) for answer in answers) == 4


@pytest.mark.states("S4-046")
async def test_concurrent_texts_get_the_same_vectors_as_alone(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), threads=1, parallel=2)
    texts = [f"read file number {number}" for number in range(11)]
    together = await asyncio.gather(*map(embedder.embed_query, texts))
    alone = [await embedder.embed_query(text) for text in texts]
    embedder.close()
    np.testing.assert_array_equal(np.stack(together), np.stack(alone))


async def test_a_cancelled_request_does_not_affect_concurrent_ones(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), threads=1)
    requests = [asyncio.ensure_future(embedder.embed_query(text)) for text in ("read", "write", "send")]
    await asyncio.sleep(0)
    requests[1].cancel()
    vectors = await asyncio.gather(*requests, return_exceptions=True)
    embedder.close()
    assert isinstance(vectors[1], asyncio.CancelledError)
    assert all(isinstance(vectors[position], np.ndarray) for position in (0, 2))


def test_tokens_beyond_the_models_length_are_counted(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), threads=1)
    assert embedder.count_tokens("") == 0
    assert embedder.count_tokens("read a file") == 3
    assert embedder.count_tokens("read a file " * 1_000) == 3_000
    assert embedder.count_tokens("half a letter: \ud800") > 0
    embedder.close()


@pytest.mark.parametrize("model", ["./m", "~/no-such-model", "/no/such/model"])
def test_a_missing_folder_is_refused_as_a_folder(model: str) -> None:
    with pytest.raises(ModelUnknown, match=f"{model} cannot be loaded: there is no such folder") as refused:
        known_name(model)
    assert len(refused.value.hint) < 100


@given(st.lists(st.integers(0, 300), max_size=100), st.integers(1, 400))
def test_a_batch_is_filled_up_to_its_tokens_with_padding(tokens: list[int], max_tokens: int) -> None:
    chosen = list(batches(tokens, max_tokens))
    assert sorted(place for batch in chosen for place in batch) == list(range(len(tokens)))
    for batch in chosen:
        assert len(batch) <= BATCH
        assert len(batch) == 1 or len(batch) * max(tokens[place] for place in batch) <= max_tokens
    for batch, following in pairwise(chosen):
        assert len(batch) == BATCH or (len(batch) + 1) * tokens[following[0]] > max_tokens
        assert tokens[batch[-1]] <= tokens[following[0]], "the shortest first"


async def test_texts_of_any_length_get_their_vectors_in_their_order(weights: Path) -> None:
    embedder = LocalEmbedder(str(weights), threads=1)
    animals = ["a cat", "a large dog that barks at the neighbours' door", "fish " * 40]
    vectors = await embedder.embed_texts((animals * WINDOW)[: WINDOW + 2])
    alone = [await embedder.embed_query(text) for text in animals]
    assert [int(np.argmax([vector @ one for one in alone])) for vector in vectors] == ([0, 1, 2] * WINDOW)[
        : WINDOW + 2
    ]


async def test_a_text_has_one_vector_whatever_is_embedded_with_it(weights: Path) -> None:
    """Dynamic quantization scales by the whole batch: such a model embeds each text alone."""
    model = LocalEmbedder(str(weights), threads=1)
    texts = ["read a file", "x", "create a pull request from a branch, with reviewers and labels", "ls"]
    together = await model.embed_texts(texts)
    alone = [(await model.embed_texts([text]))[0] for text in texts]
    assert np.abs(together - np.array(alone)).max() < 1e-5
    model.close()
