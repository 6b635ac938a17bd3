"""Versions of the document index in memory, for tests."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.documents.model.points import (
    DocumentChange,
    DocumentVersion,
    FillPosition,
    IndexedChunk,
    IndexedDocument,
    VersionState,
)

SAMPLE = 2_000

Documents = dict[DocumentKey, IndexedDocument]
Candidate = tuple[ChunkId, IndexedChunk]


class MemoryDocumentVersions:
    """Waits for an open write without a limit: no writer is killed in memory."""

    def __init__(self) -> None:
        self._versions: dict[str, DocumentVersion] = {}
        self._changes: dict[tuple[str, Tenant, DocumentKey], DocumentChange] = {}
        self._open: dict[tuple[str, Tenant, DocumentKey], int] = {}
        self._revisions = count(1)
        self._lease = ("", 0.0)

    async def all(self) -> Sequence[DocumentVersion]:
        return list(self._versions.values())

    async def begin_empty(self, name: str) -> None:
        self._versions = {name: DocumentVersion(name, VersionState.LIVE)}
        self._changes.clear()

    async def begin(self, live: str, building: str) -> DocumentVersion:
        expected = {live: VersionState.LIVE, building: VersionState.BUILDING}
        for version in self._versions.values():
            if expected.get(version.name) is not version.state:
                raise Conflict(
                    f"there is a version {version.name} of the documents' index already ({version.state})"
                )
        for name, state in expected.items():
            self._versions.setdefault(name, DocumentVersion(name, state))
        return self._versions[building]

    async def advance(self, name: str, position: FillPosition) -> None:
        self._versions[name] = replace(self._versions[name], position=position)

    async def switch(self, name: str) -> None:
        if name not in self._versions:
            raise NotFound(f"no version {name} of the documents' index is known")
        for version in self._versions.values():
            state = VersionState.LIVE if version.name == name else VersionState.PREVIOUS
            self._versions[version.name] = replace(version, state=state)

    async def forget(self, name: str) -> None:
        self._versions.pop(name, None)
        self._changes = {key: change for key, change in self._changes.items() if change.target in self._versions}

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        self._versions = self._versions or {source: DocumentVersion(source, VersionState.LIVE)}
        if source not in self._versions or self._versions[source].state is not VersionState.LIVE:
            return False
        for target in self._versions:
            for key in keys if target != source else ():
                self._record(target, source, tenant, key)
                self._open[target, tenant, key] = self._open.get((target, tenant, key), 0) + 1
        return True

    async def written(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> None:
        for target in self._versions:
            for key in keys if target != source else ():
                self._record(target, source, tenant, key)
                self._open[target, tenant, key] = max(0, self._open.get((target, tenant, key), 0) - 1)

    async def changes(self, target: str, limit: int) -> Sequence[DocumentChange]:
        ready = [
            change for key, change in self._changes.items() if change.target == target and not self._open.get(key)
        ]
        return sorted(ready, key=lambda change: change.revision)[:limit]

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        recorded = {key: self._changes.get((target, tenant, key)) for key in keys}
        return {key: change.revision for key, change in recorded.items() if change is not None}

    async def pending(self, target: str) -> int:
        return sum(change.target == target for change in self._changes.values())

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        for change in changes:
            key = (change.target, change.tenant, change.key)
            recorded = self._changes.get(key)
            if recorded is not None and recorded.revision == change.revision:
                del self._changes[key]
                self._open.pop(key, None)

    async def hold(self, holder: str, seconds: float) -> bool:
        held_by, expires_at = self._lease
        if held_by not in ("", holder) and expires_at > time.monotonic():
            return False
        self._lease = (holder, time.monotonic() + seconds)
        return True

    async def release(self, holder: str) -> None:
        if self._lease[0] == holder:
            self._lease = ("", 0.0)

    def _record(self, target: str, source: str, tenant: Tenant, key: DocumentKey) -> None:
        self._changes[target, tenant, key] = DocumentChange(target, source, tenant, key, next(self._revisions))
