"""How far long work has come."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`total` is None while nobody knows it."""

    task: str
    done: int
    total: int | None = None


OnProgress = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """For work that nobody watches."""
