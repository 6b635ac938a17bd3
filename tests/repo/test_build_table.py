"""The parts of `scripts/build-table`: sums over tokens and texts, the fit, and four bits for a number."""

import sys
import tarfile
from pathlib import Path

import numpy as np

from tests.repo.sources import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from table_parts.corpus import _synsets, _wish
from table_parts.fit import Bags, fit, quantize
from table_parts.write import write_table

from toolscript.core.embedding.static_table import FOLDER, TOKENIZER_FILE, StaticEmbedder

TOKENS, DIMENSIONS = 60, 8
# Two lines of WordNet's data files: the words, and behind the bar the definition and its examples.
VERB = (
    '00001740 29 v 02 breathe 0 take_a_breath 0 000 01 + 02 00 | draw air into the lungs; "I can breathe better"'
)
NOUN = "00002137 03 n 01 abstraction 0 000 | a general concept"


def random_texts(count: int) -> list[list[int]]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, TOKENS, rng.integers(1, 9)).tolist() for _ in range(count)]


def test_sums_over_the_tokens_of_a_text_and_over_the_texts_of_a_token() -> None:
    texts = random_texts(200)
    bags = Bags(texts, TOKENS)
    counts = np.array([np.bincount(text, minlength=TOKENS) for text in texts], dtype=np.float32)
    rng = np.random.default_rng(4)
    table = rng.normal(size=(TOKENS, DIMENSIONS)).astype(np.float32)
    rows = rng.normal(size=(len(texts), DIMENSIONS)).astype(np.float32)
    np.testing.assert_allclose(bags.pool(table), counts @ table, atol=1e-5)
    np.testing.assert_allclose(bags.spread(rows), counts.T @ rows, atol=1e-4)


def test_the_fit_finds_vectors_whose_sums_point_to_the_targets() -> None:
    """One dimension is always zero, as in the model."""
    bags = Bags(random_texts(2_000), TOKENS)
    rng = np.random.default_rng(5)
    true, start = (rng.normal(size=(TOKENS, DIMENSIONS)).astype(np.float32) for _ in range(2))
    true[:, 0] = start[:, 0] = 0
    targets = bags.pool(true)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)

    def cosine(table: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
        sums = bags.pool(table)
        return float((sums * targets).sum(axis=1).mean() / np.linalg.norm(sums, axis=1).mean())

    assert cosine(start) < 0.5
    assert cosine(fit(bags, targets, start)) > 0.9


async def test_a_written_table_gives_the_vectors_it_was_made_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table = rng.normal(size=(30_522, 16)).astype(np.float32)
    write_table(tmp_path, *quantize(table), FOLDER / TOKENIZER_FILE, {"texts": 0})
    embedder = StaticEmbedder(tmp_path)
    [token] = embedder._tokens("weather")
    vector = await embedder.embed_query("weather")
    assert float(vector @ table[token] / np.linalg.norm(table[token])) > 0.98
    assert embedder.model.dimensions == 16


def test_wordnet_is_read_and_a_description_becomes_a_request(tmp_path: Path) -> None:
    package = tmp_path / "package" / "dict"
    package.mkdir(parents=True)
    lines = {"adj": "", "adv": "", "noun": NOUN, "verb": VERB}
    for part, line in lines.items():
        (package / f"data.{part}").write_text(f"  1 a licence\n{line}\n", "utf-8")
    with tarfile.open(tmp_path / "wordnet.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    noun, verb = _synsets(tmp_path / "wordnet.tgz")
    assert (noun.lemmas, noun.definition, noun.examples) == (("abstraction",), "a general concept", ())
    assert (verb.lemmas, verb.definition) == (("breathe", "take a breath"), "draw air into the lungs")
    assert verb.examples == ("I can breathe better",)
    assert _wish("Creates a bucket.", frozenset({"create"})) == "create a bucket"
    assert _wish("The bucket is created.", frozenset({"create"})) == ""
