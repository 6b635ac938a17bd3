"""Why an item was not returned, where the engines are to blame or its name does not find it."""

from collections.abc import Mapping, Sequence

import pytest

from tests.unit.tools.search.builders import Scene, WatchedIndex
from toolscript.core.errors import IndexUnavailable
from toolscript.core.retrieval.model import Fields
from toolscript.tools.model.answer import AbsenceReason, WhyNotAnswer
from toolscript.tools.model.query import Strategy, ToolQuery


class _ReadsNamesAlone(WatchedIndex):
    """Finds, and does not hand out what is to be returned."""

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        if not only:
            raise IndexUnavailable("down")
        return await super().fields(ids, only)


async def absence(scene: Scene, about: str, limit: int = 10) -> WhyNotAnswer:
    query = ToolQuery("read a file", threshold=0.0, strategy=Strategy.DIRECT, about=about, limit=limit)
    said = (await scene.search(query)).absence
    assert said is not None
    return said


async def test_an_item_whose_fields_could_not_be_read_is_not_said_to_be_beyond_the_limit() -> None:
    said = await absence(Scene(index=_ReadsNamesAlone()), "fs__read_file")
    assert said.reason is AbsenceReason.NOTHING_SEARCHED
    assert "place 1" in said.message
    assert "could not be read" in said.message
    beyond = await absence(Scene(index=_ReadsNamesAlone()), "fs__write_file", limit=1)
    assert beyond.reason is AbsenceReason.BEYOND_LIMIT


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("99999", "no such item"),
        ("fs__rename_file", "not found by the words of its name"),
        ("9" * 19, "not found by the words of its name"),
    ],
)
async def test_only_of_an_id_it_is_said_that_there_is_no_such_item(about: str, said: str) -> None:
    absent = await absence(Scene(), about)
    assert absent.reason is AbsenceReason.UNKNOWN
    assert absent.message.startswith(said)
