"""Who is told when a resource of a server was updated, as long as its connection lives."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

Tell = Callable[[], None]


class ResourceUpdates:
    def __init__(self) -> None:
        self._told = defaultdict[str, list[Tell]](list)
        self.ended = anyio.Event()

    @contextmanager
    def told(self, uri: str, tell: Tell) -> Iterator[bool]:
        """Tell of updates while the context is open; yield whether nobody else is told of this resource."""
        self._told[uri].append(tell)
        try:
            yield len(self._told[uri]) == 1
        finally:
            self._told[uri].remove(tell)
            if not self._told[uri]:
                del self._told[uri]

    def is_last(self, uri: str) -> bool:
        return len(self._told[uri]) == 1

    def tell(self, updated: str) -> None:
        """Tell of an update; a server may name a part of the resource that was subscribed to."""
        for uri, told in [*self._told.items()]:
            if updated == uri or updated.startswith(f"{uri.rstrip('/')}/"):
                for tell in [*told]:
                    tell()

    def end(self) -> None:
        self.ended.set()
