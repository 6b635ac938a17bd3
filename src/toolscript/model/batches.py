"""Much of anything, some at a time."""

from collections.abc import Iterable, Iterator
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
