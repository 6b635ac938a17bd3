"""How far a database was migrated, and whether this version of the program can run on it."""

from collections.abc import Sequence
from dataclasses import dataclass


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
        return self.current is not None and self.current not in {one.id for one in self.revisions}

    def is_applied(self, revision: Revision) -> bool:
        return self.current is not None and (self.is_newer or revision.id <= self.current)
