"""`ToolIndex` finds tools given in code, in any thread, while tools come and go."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import toolscript
from tests.unit.tool_index.definitions import (
    ALL,
    CONVERT,
    CREATE_ISSUE,
    DEFINED,
    PLAY,
    Definition,
    forecast,
    read_file,
)
from toolscript import ToolIndex
from toolscript.core.errors import BlankQuery, EmbedderUnavailable, InvalidRequest, ModelNotFound, NotFound
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.query import SearchType
from toolscript.testing import HashEmbedder
from toolscript.tool_index import IndexAnswer, Outcome

pytestmark = pytest.mark.requirement("AP-002")

MANY: list[Definition] = [
    {"name": f"tool_{number}", "description": f"word{number} common", "parameters": {}} for number in range(300)
]


@pytest.fixture(params=["words", "model"])
def index(request: pytest.FixtureRequest) -> ToolIndex[Any]:
    """Return an index over tools of every kind, by words alone and with a model."""
    return ToolIndex.from_tools(ALL, model=None if request.param == "words" else HashEmbedder())


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("read a file", "read_file"),
        ("the weather forecast", "forecast"),
        ("open an issue", "create_issue"),
        ("conver curency", "convert_currency"),
        ("git__commit", "git__commit"),
        ("play a song", "music__play_song"),
        ("the headline of an issue", "create_issue"),
    ],
)
def test_a_search_returns_the_tool_that_was_given(index: ToolIndex[Any], query: str, name: str) -> None:
    best = index.search(query).hits[0]
    assert best.name == name
    assert best.tool is ALL[index.names.index(name)]
    assert 0.35 <= best.confidence <= 1
    assert best.score == pytest.approx(sum(best.contributions.values()), abs=0.01)


async def test_searching_asynchronously_gives_the_same_answer(index: ToolIndex[Any]) -> None:
    answers = await asyncio.gather(*(index.asearch("read a file", limit=5, threshold=0) for _ in range(4)))
    expected = await asyncio.to_thread(index.search, "read a file", limit=5, threshold=0)
    assert [answer.hits for answer in answers] == [expected.hits] * 4
    assert len(expected.hits) > 1 or not expected.semantic


def test_the_types_of_the_tools_are_those_of_the_hits() -> None:
    defined = ToolIndex.from_tools(DEFINED, model=None)
    assert_type(defined, ToolIndex[Definition])
    assert_type(defined.search("a song"), IndexAnswer[Definition])
    functions = ToolIndex.from_tools([read_file], model=None)
    assert functions.search("read").hits[0].tool("a") == "autf-8text"
    by_server = ToolIndex.from_tools({"bank": [CONVERT]}, model=None)
    assert_type(by_server, ToolIndex[Definition])
    assert by_server.search("convert money").tools == [CONVERT]


def test_the_verdict_says_when_nothing_fits(index: ToolIndex[Any]) -> None:
    answer = index.search("fold laundry neatly")
    assert (answer.hits, answer.good_match, answer.total) == ((), False, 0)
    assert set(answer.unmatched) == {"fold", "laundry", "neatly"}
    assert answer.hint == "try other words"


def test_limit_threshold_and_search_type_are_those_of_the_gateway(index: ToolIndex[Any]) -> None:
    assert len(index.search("issues of a repository", limit=1, threshold=0).hits) == 1
    assert index.search("issues", threshold=1.0).hits == ()
    literal = index.search("issues of a repository", search_type=SearchType.KEYWORD)
    assert not literal.semantic
    assert literal.hits[0].contributions.keys() == {"words"}
    with pytest.raises(InvalidRequest, match="limit must be 1 to 100"):
        index.search("x", limit=0)
    with pytest.raises(BlankQuery):
        index.search("  ")


def test_without_a_model_words_alone_answer_and_nothing_is_missing() -> None:
    index = ToolIndex.from_tools(DEFINED, model=None)
    answer = index.search("open an issue")
    assert (answer.semantic, answer.hint, index.model) == (False, "", None)
    assert answer.hits[0].similarity is None


def test_a_function_comes_with_the_schema_that_an_agent_needs(index: ToolIndex[Any]) -> None:
    best = index.search("predict the weather").hits[0]
    assert best.tool is forecast
    assert best.input_schema is not None
    assert best.input_schema["required"] == ["city"]
    assert best.description.startswith("Predict the weather.")


def test_an_explanation_says_what_became_of_a_tool(index: ToolIndex[Any]) -> None:
    best = index.explain("open an issue", "create_issue")
    assert (best.outcome, best.place, best.hit.tool) == (Outcome.RETURNED, 1, CREATE_ISSUE)
    assert best.hit == index.search("open an issue").hits[0]
    second = index.explain("issues of a repository", "create_issue", limit=1, threshold=0)
    assert second.place is not None
    assert second.outcome == (Outcome.RETURNED if second.place == 1 else Outcome.BEYOND_LIMIT)
    other = index.explain("open an issue", "list_issues", threshold=1.0)
    assert other.outcome == Outcome.BELOW_THRESHOLD
    assert other.unmatched == ("create",)
    assert "lacks the words create" in str(other)


def test_a_tool_that_no_retriever_finds_is_explained_too() -> None:
    index = ToolIndex.from_tools(MANY, model=HashEmbedder())
    lost = index.explain("word7", "tool_299")
    assert (lost.outcome, lost.place, lost.hit.confidence) == (Outcome.NOT_RETRIEVED, None, 0.0)
    assert lost.candidates < len(index)
    assert lost.hit.similarity is not None
    assert str(lost).startswith("tool_299: not retrieved, no candidate, confidence 0.00. Not among the first 100")


def test_tools_can_be_added_and_removed_and_only_new_ones_are_embedded() -> None:
    embedder = HashEmbedder()
    index = ToolIndex.from_tools([CREATE_ISSUE], model=embedder)
    before = embedder.texts_embedded
    index.add([PLAY])
    assert embedder.texts_embedded - before == 3
    assert index.search("play a song").tools == [PLAY]
    index.remove("create_issue")
    assert (index.names, len(index), "create_issue" in index) == (("music__play_song",), 1, False)
    assert embedder.texts_embedded - before == 3
    index.add([CREATE_ISSUE])
    assert index.search("open an issue").tools == [CREATE_ISSUE]


def test_an_index_without_tools_says_so() -> None:
    index = ToolIndex.from_tools(DEFINED, model=HashEmbedder())
    index.remove(*index.names)
    answer = index.search("open an issue")
    assert (len(index), answer.hits, answer.good_match) == (0, (), False)
    assert answer.hint == "the index has no tools: add some with `add`"


def test_adding_is_all_or_nothing(index: ToolIndex[Any]) -> None:
    with pytest.raises(InvalidRequest) as taken:
        index.add([CONVERT | {"name": "new"}, CONVERT])
    assert taken.value.message == "tool 2: the name 'convert_currency' is taken by the index"
    assert taken.value.hint == "to replace it, remove('convert_currency') first"
    assert "new" not in index
    with pytest.raises(NotFound) as unknown:
        index.remove("forecast", "read_fiel")
    assert unknown.value.hint.startswith("did you mean read_file")
    assert "forecast" in index
    with pytest.raises(NotFound):
        index.explain("x", "nothing")


class FailingEmbedder(HashEmbedder):
    fails = False

    async def embed_query(self, text: str) -> Vector:
        if self.fails:
            raise EmbedderUnavailable("the model has gone")
        return await super().embed_query(text)

    async def embed_texts(self, texts: Any) -> Matrix:
        if self.fails:
            raise EmbedderUnavailable("the model has gone")
        return await super().embed_texts(texts)


def test_a_model_that_fails_leaves_the_index_as_it_was_and_words_answer() -> None:
    embedder = FailingEmbedder()
    index = ToolIndex.from_tools(DEFINED, model=embedder)
    embedder.fails = True
    with pytest.raises(EmbedderUnavailable):
        index.add([CONVERT | {"name": "new"}])
    assert "new" not in index
    answer = index.search("open an issue")
    assert (answer.tools[0], answer.semantic) == (CREATE_ISSUE, False)
    assert answer.hint == "keyword search only: the model has gone"
    embedder.fails = False
    assert index.search("open an issue").semantic


def test_a_model_that_cannot_be_loaded_says_what_to_give_instead(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound) as raised:
        ToolIndex.from_tools(DEFINED, model=tmp_path)
    assert raised.value.hint.endswith("or None for words alone")


def test_threads_search_while_tools_come_and_go() -> None:
    """Every answer is that of one of the two states."""
    index = ToolIndex.from_tools(MANY, model=HashEmbedder())
    queries = [f"word{number}" for number in range(0, 300, 10)]

    def names(query: str) -> tuple[str, ...]:
        return tuple(hit.name for hit in index.search(query, limit=5, threshold=0).hits)

    without = {query: names(query) for query in queries}
    more: Definition = {"name": "extra", "description": " ".join(queries), "parameters": {}}
    index.add([more])
    allowed = {query: {without[query], names(query)} for query in queries}
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            index.remove("extra")
            index.add([more])

    changing = threading.Thread(target=change)
    changing.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda query: (query, names(query)), queries * 4))
    finally:
        stop.set()
        changing.join()
    assert [query for query, answer in answers if answer not in allowed[query]] == []


def test_the_order_of_the_tools_does_not_change_the_ranking() -> None:
    embedder = HashEmbedder()
    shuffled = [MANY[row] for row in np.random.default_rng(5).permutation(len(MANY))]
    first, second = (ToolIndex.from_tools(tools, model=embedder) for tools in (MANY, shuffled))
    for query in ("word5 common", "common", "tool_17", "word299"):
        assert first.search(query, limit=20, threshold=0).hits == second.search(query, limit=20, threshold=0).hits


FORKED = """
import os
from toolscript import ToolIndex, ToolscriptError
from toolscript.testing import HashEmbedder
index = ToolIndex.from_tools([{"name": "read", "description": "", "parameters": {}}], model=HashEmbedder())
index.search("read")
child = os.fork()
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    index.search("read")
except ToolscriptError as error:
    own = ToolIndex.from_tools([{"name": "read", "description": "", "parameters": {}}], model=HashEmbedder())
    os._exit(7 if "`load` it in each process" in error.hint and own.search("read").hits else 8)
os._exit(9)
"""


def run_python(script: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_child_process_is_told_to_load_an_index_of_its_own() -> None:
    done = run_python(FORKED.replace("import os\n", "import os, warnings\nwarnings.simplefilter('ignore')\n", 1))
    assert done.returncode == 7, done.stderr


def test_a_program_ends_without_closing_the_index() -> None:
    done = run_python(
        "from toolscript import ToolIndex\n"
        "index = ToolIndex.from_tools([{'name': 'read', 'parameters': {}}], model=None)\n"
        "print(index.search('read').hits[0].name)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")


def test_importing_the_package_does_not_import_the_index() -> None:
    done = run_python(
        "import sys, toolscript; print('toolscript.tool_index' in sys.modules, toolscript.ToolIndex)"
    )
    assert done.stdout == "False <class 'toolscript.tool_index.index.ToolIndex'>\n"
    with pytest.raises(AttributeError):
        _ = toolscript.ToolIndexes  # type: ignore[attr-defined]


def test_a_name_that_differs_from_a_function_by_case_is_found(index: ToolIndex[Any]) -> None:
    check: Callable[[str], str] = lambda query: index.search(query).hits[0].reason  # noqa: E731
    assert check("READ_FILE") == check("read_file") == "Exact name"
