"""Ingest is killed at every call of every port, before its effect and after: the next run repairs everything."""

import copy
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import pytest

from tests.unit.knowledge.ingest.ingest_builders import (
    FOLDER,
    CountingEmbedder,
    Death,
    FilesInMemory,
    Killed,
    Place,
    ScriptedText,
    text_of,
)
from toolscript.knowledge.model.library import point_of

pytestmark = pytest.mark.slow

KEPT, CHANGED, GONE, NEW = (f"{FOLDER}/{name}.md" for name in ("kept", "changed", "gone", "new"))


def before() -> FilesInMemory:
    return FilesInMemory(
        {
            KEPT: text_of("Kept", "It stays as it is."),
            CHANGED: text_of("Changed", "First of all.", "Then comes this.", "At last that."),
            GONE: text_of("Gone", "It will be gone.", "All of it goes."),
        }
    )


def after() -> FilesInMemory:
    return FilesInMemory(
        {
            KEPT: text_of("Kept", "It stays as it is."),
            CHANGED: text_of("Changed", "Something came before.", "First of all.", "At last that.", "One more."),
            NEW: text_of("New", "It was not there.", "Now it is.", "With three parts."),
        }
    )


async def clean(files: FilesInMemory) -> dict[str, object]:
    place = Place(text=ScriptedText())
    await place.run(files)
    return await place.state()


async def dies(place: Place, death: Death, run: Callable[[], Awaitable[object]]) -> bool:
    """Return whether the run was killed before it finished."""
    try:
        await run()
    except Killed:
        place.later()
        return True
    return False


@pytest.mark.requirement("KN-005")
@pytest.mark.parametrize("is_after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("goes_back", [False, True], ids=["goes on", "finds the old files"])
async def test_after_a_kill_at_any_call_the_next_run_gives_the_result_of_a_clean_one(
    is_after: bool, goes_back: bool
) -> None:
    files = before() if goes_back else after()
    expected = await clean(files)
    filled = Place(text=ScriptedText())
    await filled.run(before())
    at_call = 0
    while True:
        at_call += 1
        place = copy.deepcopy(filled)
        death = Death(at_call, is_after)
        if not await dies(place, death, lambda: place.run(after(), death=death, at_once=1)):  # noqa: B023
            break
        marked = place.marked_texts()
        place.embedder.texts.clear()
        await place.run(files)
        assert await place.state() == expected, f"killed at call {at_call}"
        again = {text for text in place.embedder.texts if text.rpartition("\n")[2] in marked}
        assert not again, f"killed at call {at_call}, embedded again: {again}"
    assert at_call > 60, "it has to die often for this to mean anything"


async def test_after_a_kill_at_any_call_no_stored_extraction_is_requested_again() -> None:
    at_call = 0
    while True:
        at_call += 1
        place = Place(text=ScriptedText())
        death = Death(at_call)
        died = await dies(place, death, lambda: place.run(after(), death=death, at_once=1))  # noqa: B023
        kept = {place.library._chunks[id_].content for id_, mark in place.library._marks.items() if mark.extracted}
        assert place.text is not None
        place.text.asked.clear()
        await place.run(after())
        assert not kept & place.text.asked.keys(), f"killed at call {at_call}"
        if not died:
            break


def three_facts(passage: Mapping[str, Any]) -> object:
    texts = [f"{word}: {passage['text']}" for word in ("Mind", "Note", "Remember")]
    extractions = [{"type": "fact", "title": line[:9], "text": line, "topics": []} for line in texts]
    return {"passage": passage["passage"], "extractions": extractions}


@pytest.mark.parametrize("extracts", [True, False], ids=["extracts again", "does not extract"])
async def test_after_a_kill_with_a_new_model_every_extraction_has_its_point(extracts: bool) -> None:
    files = FilesInMemory({NEW: after().texts[NEW]})
    filled, fewer = Place(text=ScriptedText(three_facts, "first")), Place(text=ScriptedText(name="second"))
    await filled.run(files)
    await fewer.run(files)
    expected = await fewer.state()
    at_call = 0
    while True:
        at_call += 1
        place = copy.deepcopy(filled)
        place.text = ScriptedText(name="second")
        death = Death(at_call, after=bool(at_call % 2))
        if not await dies(place, death, lambda: place.run(files, death=death, at_once=1)):  # noqa: B023
            break
        place.text = place.text if extracts else None
        await place.run(files)
        state = await place.state()
        assert _points(place.library._extractions) == cast("dict[int, object]", state["extraction points"]).keys()
        assert not extracts or state == expected, f"killed at call {at_call}"
    assert await place.state() == expected
    assert at_call > 20


def _points(ids: Iterable[str]) -> set[int]:
    return {point_of(id_) for id_ in ids}


async def test_an_ingest_that_is_killed_repeatedly_finishes() -> None:
    """Each run makes progress, although each has only a few calls."""
    place, expected = Place(text=ScriptedText()), await clean(after())
    await place.run(before())
    runs = 1
    while await dies(place, death := Death(40), lambda: place.run(after(), death=death, at_once=2)):
        runs += 1
        assert runs < 50
    assert runs > 2
    assert await place.state() == expected


@pytest.mark.parametrize("is_after", [False, True], ids=["before the call", "after the call"])
async def test_a_reindex_killed_at_any_call_resumes_and_leaves_nothing_to_embed(is_after: bool) -> None:
    files = FilesInMemory({NEW: after().texts[NEW]})
    other, filled = Place(CountingEmbedder("other"), ScriptedText()), Place(text=ScriptedText())
    await other.run(files)
    await filled.run(files)
    expected = await other.state()
    at_call = 0
    while True:
        at_call += 1
        place = copy.deepcopy(filled)
        death = Death(at_call, is_after)
        died = await dies(place, death, lambda: place.reindex(CountingEmbedder("other"), death))  # noqa: B023
        if not died:
            break
        await place.reindex(CountingEmbedder("other"))
        place.embedder.texts.clear()
        # A source that the killed run had claimed is checked again, and found complete.
        await place.run(files)
        assert await place.state() == expected, f"killed at call {at_call}"
        assert not place.embedder.texts
    assert await place.state() == expected
    assert at_call > 30
