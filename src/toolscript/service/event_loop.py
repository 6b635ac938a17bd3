"""How a process that answers requests runs: the same for a server and for what it is measured against."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvicorn

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Where there is a faster event loop than Python's own, it is used."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", log_config=None).get_loop_factory()) as runner:
        return runner.run(main)


def collect_seldom() -> None:
    """A search leaves hardly any circles behind, and looking for them stops all searches for a while.

    What is there at the start stays, and is never looked at again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
