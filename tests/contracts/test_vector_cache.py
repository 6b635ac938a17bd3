"""Contract of the vector cache."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.contracts.builders import CARD, axis
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import VectorCache
from toolscript.gateway.store.embeddings import EmbeddingFile

pytestmark = pytest.mark.requirement("TS-007")


class DictMemory:
    """A dict that outlives its users."""

    def __init__(self, kept: dict[str, tuple[str, Vector]]) -> None:
        self._kept = kept

    def recall(self, hashes: Sequence[str]) -> Mapping[str, Vector]:
        existing = dict(self._kept.values())
        return {key: existing[key] for key in hashes if key in existing}

    def remember(self, tools: Mapping[str, tuple[str, Vector]], absent: Collection[str] = ()) -> None:
        for name in [*self._kept]:
            if name.partition("__")[0].rpartition(":")[2] not in absent:
                del self._kept[name]
        self._kept.update(tools)


Open = Callable[[], VectorCache]


@pytest.fixture(params=["dict", "file"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens the same cache again."""
    kept: dict[str, tuple[str, Vector]] = {}
    if request.param == "dict":
        return lambda: DictMemory(kept)
    return lambda: EmbeddingFile(tmp_path / "embeddings", ["files", "mail"], CARD)


def same(found: Mapping[str, Vector], expected: Mapping[str, Vector]) -> bool:
    return found.keys() == expected.keys() and all(np.array_equal(found[key], expected[key]) for key in expected)


def test_unknown_texts_are_not_in_the_cache(memory: Open) -> None:
    assert memory().recall(["a", "b"]) == {}
    assert memory().recall([]) == {}


def test_cached_vectors_are_returned_at_once_and_later(memory: Open) -> None:
    opened = memory()
    opened.remember({"s__one": ("a", axis(1)), "s__two": ("b", axis(2))})
    for item in (opened, memory(), memory()):
        assert same(item.recall(["a", "b"]), {"a": axis(1), "b": axis(2)})


def test_only_requested_and_cached_vectors_are_returned(memory: Open) -> None:
    memory().remember({"s__one": ("a", axis(1)), "s__two": ("b", axis(2))})
    assert same(memory().recall(["b", "c", "b"]), {"b": axis(2)})


def test_only_the_most_recent_tools_are_kept(memory: Open) -> None:
    opened = memory()
    opened.remember({"s__one": ("a", axis(1)), "s__two": ("b", axis(2))})
    opened.remember({"s__two": ("b2", axis(3))})
    assert same(memory().recall(["a", "b", "b2"]), {"b2": axis(3)})


def test_tools_of_servers_that_are_absent_stay(memory: Open) -> None:
    memory().remember({"s__one": ("a", axis(1)), "t__one": ("b", axis(2)), "prompt:t__two": ("c", axis(3))})
    memory().remember({"s__new": ("d", axis(4))}, absent={"t"})
    assert same(memory().recall(["a", "b", "c", "d"]), {"b": axis(2), "c": axis(3), "d": axis(4)})
    memory().remember({"t__one": ("b2", axis(5))}, absent={"s"})
    assert same(memory().recall(["b", "b2", "c", "d"]), {"b2": axis(5), "d": axis(4)})


def test_two_tools_may_have_the_same_hash(memory: Open) -> None:
    memory().remember({"s__one": ("a", axis(1)), "t__one": ("a", axis(1))})
    assert same(memory().recall(["a"]), {"a": axis(1)})


def test_names_may_be_anything(memory: Open) -> None:
    memory().remember({'"\n/..\\ \x00 日本 💥': ("a", axis(1)), "": ("b", axis(2))})
    assert same(memory().recall(["a", "b"]), {"a": axis(1), "b": axis(2)})


def test_clearing_the_cache_is_allowed(memory: Open) -> None:
    memory().remember({"s__one": ("a", axis(1))})
    memory().remember({})
    assert memory().recall(["a"]) == {}
