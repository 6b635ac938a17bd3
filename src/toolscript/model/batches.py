"""Much of anything, some at a time."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def in_batches(many: Iterable[T], size: int) -> Iterator[list[T]]:
    """None of them empty."""
    rest = iter(many)
    while batch := list(islice(rest, size)):
        yield batch
