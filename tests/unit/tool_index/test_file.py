"""The file of an index: what is loaded answers as what was saved; a damaged or foreign file is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import pytest

from tests.unit.tool_index.definitions import ALL, COMMIT, CONVERT, CREATE_ISSUE, DEFINED, PLAY, read_file
from toolscript import ToolIndex
from toolscript.core.errors import InvalidRequest, ModelMismatch, NotFound, SetupError
from toolscript.core.items import JsonObject
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("AP-002")

QUERIES = ("open an issue", "play a song", "convert money", "nothing at all fits this")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tools.index"


def answers(index: ToolIndex[Any]) -> list[object]:
    return [[vars(hit) for hit in index.search(query, limit=10, threshold=0).hits] for query in QUERIES]


@pytest.mark.parametrize("dimensions", [None, 64])
def test_a_loaded_index_answers_as_the_saved_one_and_embeds_nothing(path: Path, dimensions: int | None) -> None:
    first, second = (None if dimensions is None else HashEmbedder(dimensions=dimensions) for _ in range(2))
    saved = ToolIndex.from_tools(DEFINED, model=first)
    saved.save(path)
    loaded = ToolIndex.load(path, model=second)
    assert_type(loaded, ToolIndex[JsonObject])
    assert answers(loaded) == answers(saved)
    assert second is None or second.texts_embedded == 0


def test_functions_are_given_again_and_only_what_is_new_is_embedded(path: Path) -> None:
    ToolIndex.from_tools(ALL, model=HashEmbedder()).save(path)
    embedder = HashEmbedder()
    changed = CONVERT | {"description": "Something else now"}
    tools: list[object] = [read_file, CREATE_ISSUE, changed, COMMIT]
    loaded = ToolIndex.load(path, tools, model=embedder)
    assert loaded.names == ("read_file", "create_issue", "convert_currency", "git__commit")
    assert embedder.texts_embedded == 2
    assert loaded.search("read a file").tools == [read_file]
    assert loaded.search("something else now").tools == [changed]


def test_a_file_cannot_hold_functions(path: Path) -> None:
    ToolIndex.from_tools(ALL, model=None).save(path)
    with pytest.raises(InvalidRequest, match="has Python functions, such as read_file") as raised:
        ToolIndex.load(path, model=None)
    assert "ToolIndex.load(path, tools)" in raised.value.hint


def test_servers_and_mcp_tools_are_kept_as_json(path: Path) -> None:
    tools: dict[str, list[object]] = {"a": [CREATE_ISSUE, COMMIT], "b": [CREATE_ISSUE], "": [PLAY]}
    ToolIndex.from_tools(tools, model=None).save(path)
    loaded = ToolIndex.load(path, model=None)
    assert set(loaded.names) == {"a__create_issue", "a__git__commit", "b__create_issue", "music__play_song"}
    (commit,) = loaded.search("record staged changes").tools
    assert commit == {
        "name": "git__commit",
        "description": "Record staged changes",
        "inputSchema": {"type": "object"},
    }


def test_saving_replaces_a_file_and_leaves_nothing_beside_it(path: Path) -> None:
    index = ToolIndex.from_tools(DEFINED, model=None)
    index.save(path)
    index.remove("create_issue")
    index.save(str(path))
    assert "create_issue" not in ToolIndex.load(path, model=None)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(SetupError, match="cannot be written"):
        index.save(path.parent)


@pytest.mark.parametrize(
    ("saved", "given", "message"),
    [
        (
            HashEmbedder(),
            HashEmbedder("other"),
            "built with the model hash, and is to be loaded with the model other",
        ),
        (HashEmbedder(), None, "built with the model hash, and is to be loaded with no model"),
        (None, HashEmbedder(), "built with no model, and is to be loaded with the model hash"),
        (HashEmbedder(), HashEmbedder(dimensions=32), "another revision of the model hash"),
    ],
)
def test_the_file_of_another_model_is_refused(
    path: Path, saved: HashEmbedder | None, given: HashEmbedder | None, message: str
) -> None:
    ToolIndex.from_tools(DEFINED, model=saved).save(path)
    with pytest.raises(ModelMismatch, match=message) as raised:
        ToolIndex.load(path, model=given)
    assert "ToolIndex.from_tools" in raised.value.hint


def changed_content(data: dict[str, Any]) -> str:
    data["content"]["tools"][0]["name"] = "another"
    return json.dumps(data)


DAMAGE: dict[str, Callable[[dict[str, Any]], str]] = {
    "cut short": lambda data: json.dumps(data)[:-100],
    "empty": lambda _: "",
    "another name": changed_content,
    "no content": lambda data: json.dumps({**data, "content": None}),
    "nested too deeply": lambda _: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused(path: Path, damage: str) -> None:
    ToolIndex.from_tools(DEFINED, model=HashEmbedder()).save(path)
    path.write_text(DAMAGE[damage](json.loads(path.read_text("utf-8"))), "utf-8")
    with pytest.raises(SetupError, match=r"tools\.index is damaged") as raised:
        ToolIndex.load(path, model=HashEmbedder())
    assert raised.value.hint.startswith("build the index again")


def test_every_flipped_letter_of_a_vector_is_noticed(path: Path) -> None:
    ToolIndex.from_tools([PLAY], model=HashEmbedder(dimensions=4)).save(path)
    text = path.read_text("utf-8")
    start = text.index('"vector":"') + len('"vector":"')
    for place in range(start, text.index('"', start)):
        path.write_text(text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :], "utf-8")
        with pytest.raises(SetupError):
            ToolIndex.load(path, model=HashEmbedder(dimensions=4))


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ('{"format": "another"}', "no file of a ToolIndex", "that `save` wrote"),
        ("[]", "no file of a ToolIndex", "that `save` wrote"),
        (
            '{"format": "toolscript.ToolIndex", "version": 2}',
            "has version 2 of the format",
            "build the index again",
        ),
    ],
)
def test_a_file_of_another_kind_or_version_is_refused(path: Path, content: str, message: str, hint: str) -> None:
    path.write_text(content, "utf-8")
    with pytest.raises(SetupError, match=message) as raised:
        ToolIndex.load(path, model=None)
    assert hint in raised.value.hint


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no file .*tools\.index"):
        ToolIndex.load(path, model=None)
