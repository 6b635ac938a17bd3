"""Work on a thread that nobody has to wait for: a program can end while it goes on."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def abandonable(work: Callable[[], T]) -> T:
    """Like `asyncio.to_thread`, whose threads a program waits for when it ends, however long they take."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        if not result.done():
            set_it()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            failure = error
            answer: Callable[[], None] = lambda: result.set_exception(failure)  # noqa: E731
        else:
            answer = lambda: result.set_result(value)  # noqa: E731
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, answer)

    threading.Thread(target=run, daemon=True).start()
    return await result
