"""The vector cache on disk returns correct vectors, whatever happened to its files."""

from pathlib import Path

import numpy as np
import pytest

from toolscript.core.embedding.cache import DiskCachedEmbedder, VectorStore, text_key
from toolscript.core.values import Progress
from toolscript.testing import HashEmbedder

TEXTS = ["read a file", "send a mail", "list all pods of a cluster"]


def cached_embedder(folder: Path, name: str = "hash") -> tuple[DiskCachedEmbedder, HashEmbedder]:
    model = HashEmbedder(name)
    return DiskCachedEmbedder(model, VectorStore(folder, model.model)), model


def file_of(folder: Path, suffix: str) -> Path:
    (file,) = folder.glob(f"*.{suffix}")
    return file


async def embedded_anew(folder: Path, texts: list[str], name: str = "hash") -> int:
    """Return how many texts a new run has to embed; check that its vectors are the model's."""
    embedder, model = cached_embedder(folder, name)
    vectors = await embedder.embed_texts(texts)
    np.testing.assert_array_equal(vectors, await HashEmbedder(name).embed_texts(texts))
    return model.texts_embedded


async def test_a_second_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    assert await embedded_anew(tmp_path, TEXTS) == 3
    assert await embedded_anew(tmp_path, [*TEXTS, "fly to the moon"]) == 1
    assert await embedded_anew(tmp_path, ["fly to the moon", *reversed(TEXTS)]) == 0


async def test_a_repeated_text_is_embedded_once_and_returned_twice(tmp_path: Path) -> None:
    assert await embedded_anew(tmp_path, ["read a file", "send a mail", "read a file"]) == 2


async def test_two_models_do_not_share_vectors(tmp_path: Path) -> None:
    await embedded_anew(tmp_path, TEXTS)
    assert await embedded_anew(tmp_path, TEXTS, name="another") == 3


async def test_queries_are_embedded_every_time(tmp_path: Path) -> None:
    embedder, model = cached_embedder(tmp_path)
    await embedder.embed_query("read a file")
    await embedder.embed_query("read a file")
    assert model.queries_embedded == 2


async def test_progress_counts_the_missing_texts(tmp_path: Path) -> None:
    seen: list[Progress] = []
    model = HashEmbedder()
    await embedded_anew(tmp_path, TEXTS[:1])
    await DiskCachedEmbedder(model, VectorStore(tmp_path, model.model), seen.append).embed_texts(TEXTS)
    assert seen == [Progress("embed", 2, 2)]


@pytest.mark.parametrize("suffix", ["keys", "vectors"])
@pytest.mark.parametrize("cut", [1, 30])
async def test_a_torn_last_record_costs_one_embedding_and_harms_no_other(
    tmp_path: Path, suffix: str, cut: int
) -> None:
    await embedded_anew(tmp_path, TEXTS)
    file = file_of(tmp_path, suffix)
    file.write_bytes(file.read_bytes()[:-cut])
    assert await embedded_anew(tmp_path, TEXTS) == 1
    assert await embedded_anew(tmp_path, TEXTS) == 0, "what was torn has been written again"


async def test_rows_without_keys_are_cut_off(tmp_path: Path) -> None:
    await embedded_anew(tmp_path, TEXTS)
    rows = file_of(tmp_path, "vectors")
    rows.write_bytes(rows.read_bytes() + b"\0" * (64 * 4 * 2 + 5))
    assert await embedded_anew(tmp_path, ["one more"]) == 1
    assert await embedded_anew(tmp_path, [*TEXTS, "one more"]) == 0


async def test_a_corrupted_vector_is_embedded_again(tmp_path: Path) -> None:
    await embedded_anew(tmp_path, TEXTS)
    rows = file_of(tmp_path, "vectors")
    whole = rows.read_bytes()
    rows.write_bytes(whole[256:512] + whole[:256] + whole[512:])
    assert await embedded_anew(tmp_path, TEXTS) == 2, "two vectors have changed places"


async def test_two_runs_at_once_never_exchange_vectors(tmp_path: Path) -> None:
    first, _ = cached_embedder(tmp_path)
    second, _ = cached_embedder(tmp_path)
    await first.embed_texts(["only the first", "has these"])
    await second.embed_texts(["only the second"])
    await first.embed_texts(["and one more"])
    assert await embedded_anew(tmp_path, ["only the first", "has these", "only the second", "and one more"]) == 0


async def test_an_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", "utf-8")
    assert await embedded_anew(blocked, TEXTS) == 3


def test_a_text_with_a_lone_surrogate_has_a_key() -> None:
    assert len(text_key("\ud800 lone")) == 32
