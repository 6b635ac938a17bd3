"""The table of the built-in model: its files, its size, and what it needs."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolscript.core.embedding.static_table import (
    BUILTIN,
    CARD_FILE,
    FOLDER,
    SCALES_FILE,
    TABLE_FILE,
    TOKENIZER_FILE,
    StaticEmbedder,
)
from toolscript.core.errors import ModelNotFound

FILES = (TABLE_FILE, SCALES_FILE, TOKENIZER_FILE)
MAX_BYTES = 8 * 1024 * 1024
NEEDS_NOTHING_ELSE = """
import asyncio, sys
from toolscript.core.embedding.static_table import StaticEmbedder
asyncio.run(StaticEmbedder().embed_query("read a file"))
print(*sorted({"onnxruntime", "fastembed", "huggingface_hub", "tokenizers"} & set(sys.modules)))
"""


def test_its_card_has_the_hash_and_the_size_of_its_files() -> None:
    card = json.loads((FOLDER / CARD_FILE).read_text("utf-8"))
    contents = [(FOLDER / name).read_bytes() for name in FILES]
    assert card["sha256"] == hashlib.sha256(b"".join(contents)).hexdigest()
    assert card["bytes"] == sum(map(len, contents)) <= MAX_BYTES
    model = StaticEmbedder().model
    assert (model.name, model.dimensions) == (BUILTIN, card["dimensions"])
    assert card["sha256"].startswith(model.revision)


def test_the_licences_of_its_sources_are_beside_it() -> None:
    notice = (FOLDER / "NOTICE.md").read_text("utf-8")
    for source in ("all-MiniLM-L6-v2", "WordNet 3.0 Copyright 2006 by Princeton University", "botocore", "google"):
        assert source in notice


def test_it_runs_without_a_model_runtime() -> None:
    done = subprocess.run([sys.executable, "-c", NEEDS_NOTHING_ELSE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_a_long_text_is_cut_as_the_model_cuts_it() -> None:
    embedder = StaticEmbedder()
    long = "read a file " * 100
    vectors = await embedder.embed_texts([long, long + "weather in Oslo " * 500])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)


async def test_the_beginning_of_a_text_counts_more_than_its_end() -> None:
    embedder = StaticEmbedder()
    rest = "the given id of the given one " * 12
    query = await embedder.embed_query("weather")
    first, last = await embedder.embed_texts([f"weather {rest}", f"{rest} weather"])
    assert first @ query > last @ query + 0.05


async def test_words_of_one_meaning_are_nearer_than_other_words() -> None:
    embedder = StaticEmbedder()
    query = await embedder.embed_query("delete a document")
    near, far = await embedder.embed_texts(["remove a file", "play some music"])
    assert near @ query > far @ query + 0.2


@pytest.mark.parametrize("name", [TABLE_FILE, CARD_FILE, TOKENIZER_FILE])
def test_a_damaged_installation_says_what_to_do(tmp_path: Path, name: str) -> None:
    for file in FOLDER.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / name).unlink()
    (tmp_path / name).write_text("damaged", "utf-8")
    with pytest.raises(ModelNotFound, match="the built-in model cannot be loaded") as error:
        StaticEmbedder(tmp_path)
    assert error.value.hint == "install the package again"
