"""A cross-encoder from a folder: its scores, its limits, and which models are refused."""

import asyncio
import math
from pathlib import Path

import pytest

from tests.unit.core.embedding.tiny_cross_encoder import MAX_TOKENS, NOTHING_COMMON, write_cross_encoder
from toolscript.core.embedding import fastembed_models
from toolscript.core.embedding.cross_encoder import BATCH, CrossEncoder
from toolscript.core.errors import ModelNotFound, ModelUnknown, Rejected, Unavailable

pytestmark = pytest.mark.requirement("DOC-007")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


def score(matches: int) -> object:
    return pytest.approx(1 / (1 + math.exp(-(NOTHING_COMMON + matches))), abs=1e-6)


async def test_each_passage_gets_the_models_score_between_0_and_1(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1)
    scores = await encoder.scores("blue cat", ["the dog sat", "a Cat on a mat", "blue cat", "blue blue cat cat"])
    assert scores == [score(0), score(1), score(2), score(4)]
    assert encoder.name == "tiny"


async def test_a_passage_scores_the_same_in_many_batches_and_alone(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1)
    passages = [("cat " * (number % 5) + "dog " * (number % 7)).strip() for number in range(2 * BATCH + 3)]
    together = await encoder.scores("cat", passages)
    assert together == [(await encoder.scores("cat", [passage]))[0] for passage in passages]
    assert together == [score(number % 5) for number in range(len(passages))]


async def test_a_passage_is_truncated_to_the_models_length(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1)
    # The input also has one word of the query and three special tokens.
    room = MAX_TOKENS - 4
    first_and_last = ["cat " + "dog " * (room - 1) + "fish", "dog " * (room - 1) + "cat", "dog " * room + "cat"]
    assert await encoder.scores("cat", first_and_last) == [score(1), score(1), score(0)]
    assert await encoder.scores("cat", ["cat" + " dog" * 250_000]) == [score(1)]


async def test_a_long_query_leaves_room_for_the_passage(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1)
    assert await encoder.scores("cat " + "dog " * 500, ["cat"]) == [score(1)]


@pytest.mark.parametrize("logit", [-1e6, 1e6])
async def test_an_extreme_score_is_still_between_0_and_1(tmp_path: Path, logit: float) -> None:
    encoder = CrossEncoder(str(write_cross_encoder(tmp_path / "sure", nothing_common=logit)), threads=1)
    assert await encoder.scores("cat", ["dog"]) == [float(logit > 0)]


async def test_a_model_with_non_finite_scores_is_refused(tmp_path: Path) -> None:
    encoder = CrossEncoder(str(write_cross_encoder(tmp_path / "broken", nothing_common=math.nan)), threads=1)
    with pytest.raises(Rejected, match="invalid scores"):
        await encoder.scores("cat", ["dog"])


async def test_an_overloaded_model_fails_at_once(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1, max_waiting=2)
    requests = [asyncio.ensure_future(encoder.scores("cat", ["cat"])) for _ in range(6)]
    answers = await asyncio.gather(*requests, return_exceptions=True)
    assert sum(isinstance(answer, Unavailable) for answer in answers) == 4
    assert await encoder.scores("cat", ["cat"]) == [score(1)]


async def test_a_cancelled_request_frees_its_place(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1, max_waiting=1)
    request = asyncio.ensure_future(encoder.scores("cat", ["cat"] * 10 * BATCH))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.wait({request})
    assert request.cancelled()
    assert await encoder.scores("cat", ["cat"]) == [score(1)]


async def test_a_closed_cross_encoder_is_unavailable(folder: Path) -> None:
    encoder = CrossEncoder(str(folder), threads=1)
    encoder.close()
    with pytest.raises(Unavailable):
        await encoder.scores("cat", ["cat"])


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelUnknown) as refused:
        CrossEncoder("some/unknown-model")
    assert "Xenova/ms-marco-MiniLM-L-6-v2" in refused.value.hint
    assert "folder-" not in refused.value.hint


def test_a_named_model_that_cannot_be_downloaded_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No server listens there.
    monkeypatch.setattr(fastembed_models, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelNotFound, match="cannot be downloaded") as refused:
        CrossEncoder("Xenova/ms-marco-MiniLM-L-6-v2", downloads=tmp_path)
    assert "TOOLSCRIPT_RERANK_MODEL" in refused.value.hint


def test_a_folder_without_a_model_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no ONNX model") as refused:
        CrossEncoder(str(tmp_path))
    assert "model.onnx" in refused.value.hint


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_a_folder_with_a_broken_file_is_refused(tmp_path: Path, broken: str) -> None:
    write_cross_encoder(tmp_path)
    (tmp_path / broken).write_text("this is not it")
    with pytest.raises(ModelNotFound, match="cannot be loaded"):
        CrossEncoder(str(tmp_path))


def test_a_model_that_is_no_cross_encoder_is_refused_at_load(model_folder: str) -> None:
    with pytest.raises(ModelNotFound, match="cannot be loaded") as refused:
        CrossEncoder(model_folder)
    assert "cross-encoder" in refused.value.hint
