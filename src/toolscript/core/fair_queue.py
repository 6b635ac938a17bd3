"""Work that runs and waits, by client: whose turn it is, and who gives way."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)
T = TypeVar("T")


def unlimited(_: object) -> None:
    return None


class FairQueue(Generic[C, T]):
    """The next one is of the client with the fewest running; among equals, of the one that was served longest ago.

    A client waits in its own line: however much it sends, another one waits for a place, and not for all of that.
    `most`: how many of a client may run at once; None: any number.
    """

    def __init__(self, most: Callable[[C], int | None] = unlimited) -> None:
        self._most = most
        self._running: Counter[C] = Counter()
        # In the order of their turns. A dict keeps the order, and removes a cancelled ticket in constant time.
        self._lines: dict[C, dict[T, None]] = {}
        self._waiting = 0

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return self._waiting

    def running_of(self, client: C) -> int:
        return self._running[client]

    def has_all_it_may(self, client: C) -> bool:
        most = self._most(client)
        return most is not None and self._running[client] >= most

    def holds(self, client: C, ticket: T) -> bool:
        return ticket in self._lines.get(client, ())

    def begin(self, client: C) -> None:
        self._running[client] += 1

    def end(self, client: C) -> None:
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]

    def wait(self, client: C, ticket: T) -> None:
        self._lines.setdefault(client, {})[ticket] = None
        self._waiting += 1

    def leave(self, client: C, ticket: T) -> None:
        if self.holds(client, ticket):
            line = self._lines[client]
            del line[ticket]
            self._waiting -= 1
            if not line:
                del self._lines[client]

    def next(self) -> T | None:
        """Take the ticket whose turn it is out of its line; it runs. None if all that wait have all they may."""
        may = [client for client in self._lines if not self.has_all_it_may(client)]
        if not may:
            return None
        client = min(may, key=self._running.__getitem__)
        ticket = next(iter(self._lines[client]))
        self.leave(client, ticket)
        if client in self._lines:
            # Behind its equals.
            self._lines[client] = self._lines.pop(client)
        self.begin(client)
        return ticket

    def gives_way(self, newcomer: C) -> T | None:
        """Return the last ticket of the longest line, if its client has more than the newcomer would have."""
        if not self._lines:
            return None
        client = max(self._lines, key=lambda client: len(self._lines[client]))
        if self._admitted(client) <= self._admitted(newcomer) + 1:
            return None
        return next(reversed(self._lines[client]))

    def _admitted(self, client: C) -> int:
        return self._running[client] + len(self._lines.get(client, ()))


class Company(Generic[C]):
    """Tells whether others than a client have come within the last `seconds`."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._latest: C | None = None
        # When the latest client came last, and when one before it did.
        self._latest_at = self._others_at = float("-inf")

    def came(self, client: C) -> None:
        if client != self._latest:
            self._latest, self._others_at = client, self._latest_at
        self._latest_at = self._now()

    def is_known_as(self, before: C, after: C) -> None:
        if before == self._latest:
            self._latest = after

    def has_others_than(self, client: C) -> bool:
        others_at = self._others_at if client == self._latest else self._latest_at
        return self._now() - others_at < self._seconds
