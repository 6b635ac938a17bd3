"""Lines of stdin, for as long as somebody wants them.

A read of a terminal or a pipe cannot be cancelled. The SDK waits for it, and Ctrl-C hangs until the next line;
here a thread reads that nobody waits for.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 64 * 1024
WAITING_LINES = 64


class InputLines:
    """An asynchronous iterator over the lines of a file descriptor. Starts to read when it is first asked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(WAITING_LINES)
        self._started = False

    def __aiter__(self) -> "InputLines":
        return self

    async def __anext__(self) -> str:
        if not self._started:
            self._started = True
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while piece := os.read(self._descriptor, AT_ONCE):
            *lines, rest = (rest + piece).split(b"\n")
            if not all(self._hand_over(line, loop) for line in lines):
                return
        if not rest or self._hand_over(rest, loop):
            self._hand_over(None, loop)

    def _hand_over(self, line: bytes | None, loop: asyncio.AbstractEventLoop) -> bool:
        """Waits until there is room; False when nobody reads any more."""
        text = None if line is None else line.decode("utf-8", "replace")
        put = self._lines.put(text)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        except (RuntimeError, asyncio.CancelledError):
            put.close()
            return False
        return True


@contextmanager
def claimed_input() -> Iterator[int]:
    """A descriptor of our own for what arrives on stdin; meanwhile children find nothing there to take away."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield wire
    finally:
        # `wire` stays open: the thread may still be reading it.
        os.dup2(wire, 0)
