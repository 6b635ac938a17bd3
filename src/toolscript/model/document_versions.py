"""Versions of the index of documents: one is live, another is built beside it, or kept for a way back."""

from dataclasses import dataclass
from enum import StrEnum

from toolscript.model.documents import DocumentKey
from toolscript.model.tenancy import Tenant


class VersionState(StrEnum):
    BUILDING = "building"
    LIVE = "live"
    PREVIOUS = "previous"


@dataclass(frozen=True)
class FillPosition:
    """How far a version is filled: up to this document of this tenant, in the order of names and keys."""

    tenant: str = ""
    key: DocumentKey = ""
    done: bool = False


@dataclass(frozen=True)
class DocumentVersion:
    """`name` is that of its collection."""

    name: str
    state: VersionState
    position: FillPosition = FillPosition()


@dataclass(frozen=True)
class DocumentChange:
    """A document that was written in `source` and may differ in `target`. Revisions are in the order of writes."""

    target: str
    source: str
    tenant: Tenant
    key: DocumentKey
    revision: int
