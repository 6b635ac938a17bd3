"""Cached text analyses: equal to a new analysis, or ignored."""

import json
from pathlib import Path

import numpy as np
import pytest

from toolscript.core.item_json import item_from_json
from toolscript.gateway.index import Analysed, LocalIndex, analyse
from toolscript.gateway.store import embeddings
from toolscript.gateway.store.embeddings import AnalysisFile

pytestmark = pytest.mark.requirement("TS-007")

ITEMS = [
    item_from_json({"server": "files", "name": "read_file", "description": "Read a file of 日本 and Россия"}),
    item_from_json({"server": "x", "name": "!!", "description": ""}),
]


def kept(folder: Path) -> Path:
    AnalysisFile(folder, ["a"]).remember({item.fingerprint: analyse(item) for item in ITEMS})
    (path,) = folder.iterdir()
    return path


def recalled(folder: Path) -> dict[str, Analysed]:
    return AnalysisFile(folder, ["a"]).recall()


def test_cached_analyses_are_read_back_unchanged(tmp_path: Path) -> None:
    kept(tmp_path)
    for item in ITEMS:
        once, again = analyse(item), recalled(tmp_path)[item.fingerprint]
        np.testing.assert_array_equal(again.terms, once.terms)
        np.testing.assert_array_equal(again.weights, once.weights)
        assert (again.terms.dtype, again.weights.dtype) == (once.terms.dtype, once.weights.dtype)
        assert sorted(again.words) == sorted(once.words)


def test_an_index_of_cached_analyses_is_the_same(tmp_path: Path) -> None:
    kept(tmp_path)
    cached = recalled(tmp_path)
    once = LocalIndex(ITEMS, [analyse(item) for item in ITEMS])
    again = LocalIndex(ITEMS, [cached[item.fingerprint] for item in ITEMS])
    query = {int(term): 1.0 for term in analyse(ITEMS[0]).terms}
    np.testing.assert_array_equal(once.word_scores(query), again.word_scores(query))
    assert once.vocabulary.words_by_length == again.vocabulary.words_by_length


def test_a_file_of_another_version_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path)
    monkeypatch.setattr(embeddings, "VERSION", [99])
    assert recalled(tmp_path) == {}


def test_a_truncated_file_is_ignored(tmp_path: Path) -> None:
    path = kept(tmp_path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 13):
        path.write_bytes(whole[:length])
        assert recalled(tmp_path) == {}, length


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", "[" * 99_999, '{"version": null, "items": {}}'])
def test_any_content_of_the_file_is_not_fatal(tmp_path: Path, content: str) -> None:
    kept(tmp_path).write_text(content)
    assert recalled(tmp_path) == {}


@pytest.mark.parametrize(
    "entry", [3, [], ["QQ==", "", ""], ["", "AAAAAA==", ""], ["!", "!", ""], [None, None, ""]]
)
def test_an_invalid_entry_is_not_fatal(tmp_path: Path, entry: object) -> None:
    path = kept(tmp_path)
    data = json.loads(path.read_text("utf-8"))
    data["items"][ITEMS[0].fingerprint] = entry
    path.write_text(json.dumps(data))
    assert recalled(tmp_path) == {}


def test_an_unwritable_folder_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    AnalysisFile(tmp_path / "taken", ["a"]).remember({})
    assert recalled(tmp_path / "taken") == {}
