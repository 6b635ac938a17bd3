"""Lets tests of several processes run concurrently, and those that measure time run alone."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait until no exclusive test runs or, for an exclusive one, until none runs at all.

    A test holds the door while it waits for the room, so that later tests queue behind it. Without the door, an
    exclusive test could starve: the room might never be empty.
    """
    with (folder / "room").open("w") as room:
        with (folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
