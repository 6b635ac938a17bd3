"""Walks through a list while entries vanish and appear: none may repeat, and none may hide another."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Read = Callable[[Any, int], Awaitable[Sequence[Any]]]
Change = Callable[[Any], Awaitable[object]]

PER_PAGE = 2
MANY = 100
MIN_ENTRIES = 6


async def stays_whole(
    read: Read, first: Any, *, vanish: Change | None, appear: Callable[[], Awaitable[object]]
) -> None:
    """Check a list that `read` returns the keys of: those after a position, at most so many.

    After the first page vanish: the entry that the next page begins after, one before it, and one that was not
    listed yet. `appear` adds entries, before and after the position where the order of the list allows both.
    """
    whole = list(await read(first, MANY))
    assert len(whole) >= MIN_ENTRIES
    listed = list(await read(first, PER_PAGE))
    assert listed == whole[:PER_PAGE]
    gone = {listed[0], listed[-1], whole[PER_PAGE + 1]} if vanish else set()
    for key in sorted(gone):
        assert vanish
        await vanish(key)
    await appear()
    while page := await read(listed[-1], PER_PAGE):
        listed += page
    now = await read(first, MANY)
    assert gone.isdisjoint(now)
    assert set(now) - set(whole)
    assert len(listed) == len(set(listed))
    assert set(whole) - gone <= set(listed)
    assert whole[PER_PAGE + 1] not in listed or not gone
    assert [key for key in now if key in listed] == [key for key in listed if key in now]
