"""The parts of `scripts/build-table`: sums over tokens and texts, the fit, and four bits for a number."""

import gzip
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from tests.repo.sources import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from table_parts.corpus import Sources, _synsets, _wish, texts_of
from table_parts.fit import Bags, fit, quantize, weigh, whiten
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


def test_weights_of_tokens_bring_the_sums_nearer_to_the_targets() -> None:
    bags = Bags(random_texts(2_000), TOKENS)
    rng = np.random.default_rng(7)
    true = rng.normal(size=(TOKENS, DIMENSIONS)).astype(np.float32)
    targets = bags.pool(true)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    lengths = np.exp(rng.normal(scale=0.7, size=TOKENS)).astype(np.float32)
    found = weigh(bags, targets, true * lengths[:, np.newaxis])
    ratios = np.linalg.norm(found, axis=1) / np.linalg.norm(true, axis=1)
    assert np.log(ratios).std() < np.log(lengths).std() / 3
    np.testing.assert_allclose(found / ratios[:, np.newaxis], true, rtol=1e-4, atol=1e-5)


def test_whitening_shrinks_the_direction_that_all_targets_share() -> None:
    rng = np.random.default_rng(8)
    targets = rng.normal(size=(500, DIMENSIONS)).astype(np.float32)
    targets[:, 0] += 5
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    shared, other = np.abs(np.diag(whiten(np.eye(DIMENSIONS, dtype=np.float32), targets)))[:2]
    assert shared < 0.7 * other


def test_no_text_equals_the_description_of_a_tool_to_evaluate_with(tmp_path: Path) -> None:
    service = {
        "operations": {
            "CreateANewChannel": {"documentation": "<p>Not necessary.</p>"},
            "not": {"documentation": "Lists pull requests."},
        }
    }
    method = {"id": "list.pullRequests.in.a.repository", "description": "Delete an attachment."}
    wheels = tmp_path / "botocore.whl", tmp_path / "google.whl"
    with zipfile.ZipFile(wheels[0], "w") as wheel:
        packed = gzip.compress(json.dumps(service).encode())
        wheel.writestr("botocore/data/necessary/2020-01-01/service-2.json.gz", packed)
    with zipfile.ZipFile(wheels[1], "w") as wheel:
        wheel.writestr("googleapiclient/discovery_cache/documents/a.json", json.dumps({"methods": {"a": method}}))
    texts = texts_of(Sources(wordnet_of(tmp_path, NOUN, VERB), *wheels))
    assert {text for text in texts if "necessary" in text or "repository" in text} == {
        "create anew channel necessary",
        "create anew channel necessary. Not necessary.",
        "list pull requests in a repository. Delete an attachment.",
        "not necessary. Lists pull requests.",
    }


async def test_a_written_table_gives_the_vectors_it_was_made_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    table = rng.normal(size=(30_522, 16)).astype(np.float32)
    write_table(tmp_path, *quantize(table), FOLDER / TOKENIZER_FILE, {"texts": 0})
    embedder = StaticEmbedder(tmp_path)
    [token] = embedder._tokens("weather")
    vector = await embedder.embed_query("weather")
    assert float(vector @ table[token] / np.linalg.norm(table[token])) > 0.98
    assert embedder.model.dimensions == 16


def wordnet_of(folder: Path, noun: str, verb: str) -> Path:
    package = folder / "package" / "dict"
    package.mkdir(parents=True)
    lines = {"adj": "", "adv": "", "noun": noun, "verb": verb}
    for part, line in lines.items():
        (package / f"data.{part}").write_text(f"  1 a licence\n{line}\n", "utf-8")
    with tarfile.open(folder / "wordnet.tgz", "w:gz") as archive:
        archive.add(folder / "package", "package")
    return folder / "wordnet.tgz"


def test_wordnet_is_read_and_a_description_becomes_a_request(tmp_path: Path) -> None:
    noun, verb = _synsets(wordnet_of(tmp_path, NOUN, VERB))
    assert (noun.lemmas, noun.definition, noun.examples) == (("abstraction",), "a general concept", ())
    assert (verb.lemmas, verb.definition) == (("breathe", "take a breath"), "draw air into the lungs")
    assert verb.examples == ("I can breathe better",)
    assert _wish("Creates a bucket.", frozenset({"create"})) == "create a bucket"
    assert _wish("The bucket is created.", frozenset({"create"})) == ""
