"""Passages of the benchmark: how they are cut, and which ways of embedding them are compared."""

import json
from pathlib import Path

import pytest

from benchmarks.passages import MAX_LETTERS, MIN_LETTERS, batches_by_count, queries_from, read_passages
from toolscript.core.errors import InvalidRequest, NotFound


def texts_file(folder: Path, texts: int) -> Path:
    path = folder / "texts.jsonl"
    lines = [
        json.dumps({"text": " ".join(f"word{number}x{place}" for place in range(100))}) for number in range(texts)
    ]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_passages_have_the_length_that_is_measured_and_the_order_of_the_seed(tmp_path: Path) -> None:
    path = texts_file(tmp_path, 40)
    passages = read_passages(path, 40, seed=1)
    assert len(set(passages)) == 40
    assert all(MIN_LETTERS <= len(passage) <= MAX_LETTERS for passage in passages)
    assert passages == read_passages(path, 40, seed=1) != read_passages(path, 40, seed=2)


def test_too_few_texts_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="passages"):
        read_passages(texts_file(tmp_path, 3), 40, seed=0)
    with pytest.raises(NotFound, match="cannot read"):
        read_passages(tmp_path / "absent.jsonl", 40, seed=0)


def test_batches_by_count_are_ordered_by_letters_and_hold_every_text() -> None:
    texts = ["x" * length for length in (5, 90, 1, 40) * 20]
    batches = batches_by_count(texts)
    assert [len(batch) for batch in batches] == [32, 32, 16]
    assert [text for batch in batches for text in batch] == sorted(texts, key=len)


def test_queries_are_the_first_words_of_passages() -> None:
    passages = [" ".join(f"w{place}" for place in range(30))] * 5
    for query in queries_from(passages, seed=0):
        assert passages[0].startswith(query)
        assert 8 <= len(query.split()) <= 12
