"""A bounded cache with a time to live."""

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class TtlCache(Generic[Key, Value]):
    """LRU cache with jittered TTL, so that entries loaded together do not expire together."""

    def __init__(self, size: int, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._seconds = seconds
        self._now = now
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._now():
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def get_all(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return the values of those that are cached, as `get` does."""
        entries, now = self._entries, self._now()
        found: dict[Key, Value] = {}
        for key in keys:
            entry = entries.get(key)
            if entry is not None and entry[0] > now:
                entries.move_to_end(key)
                found[key] = entry[1]
        return found

    def put(self, values: Mapping[Key, Value]) -> None:
        for key, value in values.items():
            expires_at = self._now() + self._seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
            self._entries[key] = expires_at, value
            self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
