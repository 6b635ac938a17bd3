"""Cached embeddings: whatever happens to the file, no vector is wrong and no error is fatal."""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolscript.core.retrieval.model import IndexCard, ModelCard, Vector
from toolscript.gateway.store.embeddings import EmbeddingFile, server_list_hash

pytestmark = pytest.mark.requirement("TS-007")

DIMENSIONS = 4
CARD = IndexCard(ModelCard("small", "1", DIMENSIONS))
OTHER = IndexCard(ModelCard("other", "1", DIMENSIONS))
SERVERS = ["mail", "files"]


def unit(*parts: float) -> Vector:
    vector = np.array(parts, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


TOOLS = {"files__read": ("hash-a", unit(1, 2, 3, 4)), "mail__send": ("hash-b", unit(-1, 0.5, 0, 1))}
HASHES = ["hash-a", "hash-b"]


def file_in(folder: Path, servers: list[str] = SERVERS, card: IndexCard = CARD) -> EmbeddingFile:
    return EmbeddingFile(folder, servers, card)


def recalled(folder: Path, **more: Any) -> Mapping[str, Vector]:
    return file_in(folder, **more).recall(HASHES)


def rewritten(path: Path, change: Any) -> None:
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data), "utf-8")


def packed(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    file = file_in(tmp_path)
    file.remember(TOOLS)
    return file.path


def test_cached_vectors_are_read_back_bit_by_bit(kept: Path) -> None:
    vectors = recalled(kept.parent)
    assert set(vectors) == set(HASHES)
    for key, vector in TOOLS.values():
        assert vectors[key].tobytes() == vector.tobytes()


def test_the_file_is_named_after_the_sorted_servers_and_records_its_model(kept: Path) -> None:
    assert kept.name == f"embeddings-{server_list_hash(['files', 'mail'])}.json"
    assert file_in(kept.parent, ["files", "mail"]).path == kept
    assert file_in(kept.parent, ["files"]).path != kept
    data = json.loads(kept.read_text("utf-8"))
    assert (data["format"], data["model"], data["card"]["name"]) == (1, CARD.fingerprint, "small")
    assert data["tools"]["files__read"]["hash"] == "hash-a"


def test_two_lists_of_servers_never_share_a_file() -> None:
    assert server_list_hash(["a,b"]) != server_list_hash(["a", "b"])
    assert server_list_hash(["a", "b"]) == server_list_hash(["b", "a"])


def test_a_truncated_file_is_set_aside_and_replaced(kept: Path) -> None:
    whole = kept.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        kept.write_bytes(whole[:length])
        file = file_in(kept.parent)
        assert file.recall(HASHES) == {}, length
        assert not kept.exists()
        assert kept.with_name(kept.name + ".broken").read_bytes() == whole[:length]
        file.remember(TOOLS)
        assert kept.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"3",
        b'"x"',
        b"{}",
        b"\xff\xfe\x00",
        b"[" * 100000,
        b'{"format":1,"tools":[]}',
        b'{"format": 2, "tools": {}}',
        b'{"format":1,"model":"x","tools":{"a":3}}',
        b"\x00" * 50,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_any_content_of_the_file_is_not_fatal(kept: Path, content: bytes) -> None:
    kept.write_bytes(content)
    assert recalled(kept.parent) == {}
    assert not kept.exists()


@pytest.mark.parametrize(
    "vector",
    [
        packed(1, 0, 0),
        packed(1, 0, 0, 0, 0),
        packed(0, 0, 0, 0),
        packed(0.5, 0, 0, 0),
        packed(float("nan"), 0, 0, 1),
        packed(float("inf"), 0, 0, 0),
        packed(3e38, 3e38, 0, 0),
        "not base64!",
        "ünicode",
        "QUJD",
        "",
        None,
        [1, 0, 0, 0],
        packed(1, 0, 0, 0)[:-1],
    ],
    ids=str,
)
def test_an_invalid_vector_invalidates_the_whole_file(kept: Path, vector: object) -> None:
    rewritten(kept, lambda data: data["tools"]["mail__send"].update(vector=vector))
    assert recalled(kept.parent) == {}
    assert recalled(kept.parent, servers=["another"]) == {}, "not by way of a sibling either"
    assert kept.with_name(kept.name + ".broken").exists()


@pytest.mark.parametrize("entry", [3, None, [], {}, {"hash": 3}, {"vector": packed(1, 0, 0, 0)}])
def test_an_invalid_entry_sets_the_file_aside(kept: Path, entry: object) -> None:
    rewritten(kept, lambda data: data["tools"].update(mail__send=entry))
    assert recalled(kept.parent) == {}


def test_the_file_of_another_model_is_set_aside_and_found_again_by_it(kept: Path) -> None:
    other = file_in(kept.parent, card=OTHER)
    assert other.recall(HASHES) == {}
    assert not kept.exists()
    other.remember({"files__read": ("hash-a", unit(0, 0, 0, 1))})
    assert recalled(kept.parent, card=OTHER)["hash-a"].tolist() == [0, 0, 0, 1]
    back = recalled(kept.parent)
    assert back["hash-a"].tobytes() == TOOLS["files__read"][1].tobytes()


@pytest.mark.parametrize("model", ["../../evil", "a/b", "", None, 3, "x" * 500, "nul\0", "日本", {"a": 1}])
def test_a_file_with_a_malformed_model_name_is_set_aside(kept: Path, model: object) -> None:
    rewritten(kept, lambda data: data.update(model=model))
    assert recalled(kept.parent) == {}
    assert not kept.exists()
    assert [path.name for path in kept.parent.iterdir()] == [f"{kept.name}.of-unknown"]


def test_missing_vectors_are_read_from_sibling_files(kept: Path) -> None:
    sibling = file_in(kept.parent, ["files"])
    sibling.remember({"files__new": ("hash-c", unit(0, 1, 0, 0))})
    vectors = file_in(kept.parent).recall([*HASHES, "hash-c", "hash-d"])
    assert set(vectors) == {*HASHES, "hash-c"}
    assert kept.exists()


def test_a_broken_sibling_is_left_alone_and_not_trusted(kept: Path) -> None:
    kept.write_text("{")
    assert recalled(kept.parent, servers=["files"]) == {}
    assert kept.read_text() == "{"


def test_a_sibling_of_another_model_is_not_trusted(kept: Path) -> None:
    assert recalled(kept.parent, servers=["files"], card=OTHER) == {}
    assert kept.exists()


def test_an_unwritable_folder_is_not_fatal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    file = file_in(tmp_path / "taken")
    assert file.recall(HASHES) == {}
    file.remember(TOOLS)
    assert set(file.recall(HASHES)) == set(HASHES), "as long as this process lives it is remembered"
    assert "cannot be cached" in caplog.text


def test_an_unreadable_file_is_not_fatal(kept: Path) -> None:
    kept.unlink()
    kept.mkdir()
    file = file_in(kept.parent)
    assert file.recall(HASHES) == {}
    file.remember(TOOLS)
    assert recalled(kept.parent) == {}


def test_nothing_is_left_behind_by_writing(kept: Path) -> None:
    file_in(kept.parent).remember(TOOLS)
    assert os.listdir(kept.parent) == [kept.name]  # noqa: PTH208
