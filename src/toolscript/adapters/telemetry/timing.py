"""How long something took that is waited for."""

import time
from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Observe(Protocol):
    def __call__(self, name: str, seconds: float, /, *, failed: bool) -> None: ...


async def timed(observe: Observe, name: str, work: Awaitable[T]) -> T:
    """Whatever ends it without an answer is a failure, a caller who gave up as well."""
    began, failed = time.perf_counter(), True
    try:
        done = await work
        failed = False
    finally:
        observe(name, time.perf_counter() - began, failed=failed)
    return done
