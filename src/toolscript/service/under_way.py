"""Much work of one kind, a few pieces of it at once: what is next is made while the engine is busy."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

UNDER_WAY = 3


async def few_at_once(pieces: Iterable[Coroutine[Any, Any, None]]) -> None:
    """The first that fails ends it."""
    under_way: set[asyncio.Task[None]] = set()
    for piece in pieces:
        if len(under_way) == UNDER_WAY:
            finished, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
        under_way.add(asyncio.create_task(piece))
        await asyncio.sleep(0)
    await asyncio.gather(*under_way)
