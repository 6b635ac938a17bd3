"""Who is told when a resource of a server was updated, as long as its connection lives."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio

Tell = Callable[[], None]


class ResourceUpdates:
    def __init__(self) -> None:
        self._told = defaultdict[str, list[Tell]](list)
        self.ended = anyio.Event()
        # What the server was asked to tell of.
        self.subscribed = set[str]()
        self._turns = dict[str, tuple[anyio.Lock, int]]()

    @asynccontextmanager
    async def turn(self, uri: str) -> AsyncIterator[None]:
        """Wait until nobody else subscribes to this resource, or unsubscribes."""
        lock, waiting = self._turns.get(uri, (anyio.Lock(), 0))
        self._turns[uri] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._turns.pop(uri)
            if waiting > 1:
                self._turns[uri] = lock, waiting - 1

    @contextmanager
    def told(self, uri: str, tell: Tell) -> Iterator[None]:
        """Tell of updates while the context is open."""
        self._told[uri].append(tell)
        try:
            yield
        finally:
            self._told[uri].remove(tell)
            if not self._told[uri]:
                del self._told[uri]

    def is_watched(self, uri: str) -> bool:
        return uri in self._told

    def tell(self, updated: str) -> None:
        """Tell of an update; a server may name a part of the resource that was subscribed to."""
        for uri, told in [*self._told.items()]:
            if updated == uri or updated.startswith(f"{uri.rstrip('/')}/"):
                for tell in [*told]:
                    tell()

    def end(self) -> None:
        self.ended.set()
