"""Tests of several processes at once, and one that measures time with nothing beside it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Waits until no test runs alone or, for one that is to, until none runs at all.

    Whoever waits for the room stands in its door. Without a door, one that is to be alone might wait for ever:
    there would always be somebody in the room.
    """
    with (folder / "room").open("w") as room:
        with (folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
