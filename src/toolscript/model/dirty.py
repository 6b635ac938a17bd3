"""The dirty set: which items an index has yet to follow."""

from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Claim:
    """Dirty items that one worker holds until its lease ends: item id to the version that made it dirty.

    `taken_over` are those that another worker held before, and may yet write: nobody knows what became of it.
    """

    token: str
    versions: dict[int, int]
    taken_over: frozenset[int] = frozenset()


# Tries after which an item counts as failing rather than unlucky.
FAILING_AFTER = 3


@dataclass(frozen=True)
class Pending:
    """How many items are dirty, how many of those have failed again and again, and how long the oldest waits."""

    total: int
    failing: int
    # The clock goes on while two are compared.
    oldest_seconds: float = field(default=0.0, compare=False)


class GenerationState(StrEnum):
    LIVE = "live"
    BUILDING = "building"
    PREVIOUS = "previous"


@dataclass(frozen=True)
class Generation:
    """One index built from the catalog. `fingerprint` is None until the first worker chooses the model."""

    id: int
    state: GenerationState
    fingerprint: str | None
