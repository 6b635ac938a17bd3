"""Small values that every capability uses: batches, progress, the state of an index and of a schema."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_batches(many: Iterable[T], size: int) -> Iterator[list[T]]:
    """None of them empty."""
    if size < 1:
        raise ValueError("a batch has at least one")
    rest = iter(many)
    while batch := list(islice(rest, size)):
        yield batch


@dataclass(frozen=True)
class Progress:
    """`total` is None while nobody knows it."""

    task: str
    done: int
    total: int | None = None


OnProgress = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """For work that nobody watches."""


@dataclass(frozen=True)
class IndexStatus:
    """`state` is live, building or previous; `under_way` says what is yet to be done in it, if anything."""

    product: str
    collection: str
    state: str
    model: str
    points: int
    shards: int
    under_way: str = ""


@dataclass(frozen=True)
class Revision:
    """One migration. `oldest_code`: programs whose last migration is this one or later can run on its schema."""

    id: str
    title: str
    oldest_code: str


@dataclass(frozen=True)
class SchemaStatus:
    """`current` is the revision of the database, None before its first migration.

    `revisions` are those this version knows, the oldest first. `problem` and `hint` are empty where it can run.
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
