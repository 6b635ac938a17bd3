"""Why an item was not returned, if an engine fails or its name does not find it."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.tools.search.builders import Scene, WatchedIndex
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.model import Fields
from toolscript.tools.model.answer import AbsenceReason, WhyNotAnswer
from toolscript.tools.model.query import Strategy, ToolQuery


class _FailsToHydrate(WatchedIndex):
    """Finds points and reads single fields, but no whole payloads."""

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        if not only:
            raise IndexUnavailable("down")
        return await super().fields(ids, only)


async def absence(scene: Scene, about: str, limit: int = 10) -> WhyNotAnswer:
    query = ToolQuery("read a file", threshold=0.0, strategy=Strategy.DIRECT, about=about, limit=limit)
    why_not = (await scene.search(query)).absence
    assert why_not is not None
    return why_not


async def test_an_item_whose_payload_could_not_be_read_is_not_reported_as_beyond_the_limit() -> None:
    why_not = await absence(Scene(index=_FailsToHydrate()), "fs__read_file")
    assert why_not.reason is AbsenceReason.NOTHING_SEARCHED
    assert "place 1" in why_not.message
    assert "could not be read" in why_not.message
    beyond = await absence(Scene(index=_FailsToHydrate()), "fs__write_file", limit=1)
    assert beyond.reason is AbsenceReason.BEYOND_LIMIT


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ("99999", "the index has no item"),
        ("fs__rename_file", "not found by the words of its name"),
        ("9" * 19, "not found by the words of its name"),
    ],
)
async def test_only_an_unknown_id_is_reported_as_missing_from_the_index(about: str, message: str) -> None:
    absent = await absence(Scene(), about)
    assert absent.reason is AbsenceReason.UNKNOWN
    assert absent.message.startswith(message)
