"""Small values that every capability uses: batches, progress, the state of an index and of a schema."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in batches of at most `size`; no batch is empty."""
    if size < 1:
        raise ValueError("a batch must hold at least one item")
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def by_size(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield the items in batches whose sizes add up to at most `most`. A larger item is a batch by itself."""
    batch: list[T] = []
    total = 0
    for item in items:
        if batch and total + size(item) > most:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


@dataclass(frozen=True)
class Progress:
    """The progress of a task. `total` is None while it is unknown."""

    task: str
    done: int
    total: int | None = None


OnProgress = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class IndexStatus:
    """The status of an index version. `state`: live, building, previous or lost; `under_way`: work left."""

    product: str
    collection: str
    state: str
    model: str
    points: int
    shards: int
    under_way: str = ""


@dataclass(frozen=True)
class Revision:
    """A migration. `oldest_code`: programs whose last migration is this one or later can run on its schema."""

    id: str
    title: str
    oldest_code: str


@dataclass(frozen=True)
class SchemaStatus:
    """The schema of a database. `current` is its revision, None before the first migration.

    `revisions` are those of this program version, oldest first. `problem` and `hint` are empty if it can run.
    """

    current: str | None
    needed: str
    oldest_code: str | None
    revisions: Sequence[Revision]
    problem: str = ""
    hint: str = ""

    @property
    def is_newer(self) -> bool:
        """Whether a later version of the program has migrated it."""
        return self.current is not None and self.current not in {revision.id for revision in self.revisions}

    def is_applied(self, revision: Revision) -> bool:
        return self.current is not None and (self.is_newer or revision.id <= self.current)
