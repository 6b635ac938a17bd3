"""What was read a moment ago: at most so many things, and none of them for long."""

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class TtlCache(Generic[Key, Value]):
    """What was asked for longest ago is forgotten first; what was read at once is not forgotten at once."""

    def __init__(self, size: int, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._seconds = seconds
        self._now = now
        self._held: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        held = self._held.get(key)
        if held is None or held[0] <= self._now():
            return None
        self._held.move_to_end(key)
        return held[1]

    def put(self, read: Mapping[Key, Value]) -> None:
        for key, value in read.items():
            until = self._now() + self._seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
            self._held[key] = until, value
            self._held.move_to_end(key)
        while len(self._held) > self._size:
            self._held.popitem(last=False)
