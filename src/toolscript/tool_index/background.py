"""One event loop on a thread of its own, so that synchronous programs can use asynchronous embedders.

All indexes of a process share it. What runs on it needs no locks among themselves, and a search never blocks the
event loop of the program.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from toolscript.core.errors import SetupError

T = TypeVar("T")


class BackgroundLoop:
    """Starts its thread at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        try:
            return asyncio.run_coroutine_threadsafe(work, self._running())
        except BaseException:
            work.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.submit(work).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        # A child process has the loop and not its thread: nothing would ever run.
        if self._loop is None or self._process != os.getpid():
            with self._lock:
                if self._loop is None or self._process != os.getpid():
                    self._loop, self._process = self._start(), os.getpid()
        return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="toolscript-index", daemon=True)
        thread.start()
        atexit.register(_stop, loop, thread)
        return loop


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)
    if not loop.is_running():
        loop.close()


def require_process(process: int) -> None:
    """Raise in a child process: the threads of the model stayed with its parent."""
    if process != os.getpid():
        raise SetupError(
            "this index was made before the process was forked, and its model did not come along",
            hint="`save` the index, and `load` it in each process",
        )


BACKGROUND = BackgroundLoop()
