"""Versions of the index of documents, in memory."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from toolscript.errors import Conflict, NotFound
from toolscript.model.document_versions import DocumentChange, DocumentVersion, FillPosition, VersionState
from toolscript.model.documents import DocumentKey
from toolscript.model.tenancy import Tenant


class MemoryDocumentVersions:
    """A writer that does not end is waited for without end: nobody is killed in here."""

    def __init__(self) -> None:
        self._versions: dict[str, DocumentVersion] = {}
        self._changes: dict[tuple[str, Tenant, DocumentKey], DocumentChange] = {}
        self._open: dict[tuple[str, Tenant, DocumentKey], int] = {}
        self._revisions = count(1)
        self._lease = ("", 0.0)

    async def all(self) -> Sequence[DocumentVersion]:
        return list(self._versions.values())

    async def begin(self, live: str, building: str) -> DocumentVersion:
        expected = {live: VersionState.LIVE, building: VersionState.BUILDING}
        for one in self._versions.values():
            if expected.get(one.name) is not one.state:
                raise Conflict(f"there is a version {one.name} of the documents' index already ({one.state})")
        for name, state in expected.items():
            self._versions.setdefault(name, DocumentVersion(name, state))
        return self._versions[building]

    async def advance(self, name: str, position: FillPosition) -> None:
        self._versions[name] = replace(self._versions[name], position=position)

    async def switch(self, name: str) -> None:
        if name not in self._versions:
            raise NotFound(f"no version {name} of the documents' index is known")
        for one in self._versions.values():
            state = VersionState.LIVE if one.name == name else VersionState.PREVIOUS
            self._versions[one.name] = replace(one, state=state)

    async def forget(self, name: str) -> None:
        self._versions.pop(name, None)
        if len(self._versions) == 1:
            self._versions.clear()
        self._changes = {key: one for key, one in self._changes.items() if one.target in self._versions}

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        if self._versions and self._versions[source].state is not VersionState.LIVE:
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
        ready = [one for at, one in self._changes.items() if one.target == target and not self._open.get(at)]
        return sorted(ready, key=lambda one: one.revision)[:limit]

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        known = {key: self._changes.get((target, tenant, key)) for key in keys}
        return {key: change.revision for key, change in known.items() if change is not None}

    async def pending(self, target: str) -> int:
        return sum(one.target == target for one in self._changes.values())

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        for one in changes:
            at = (one.target, one.tenant, one.key)
            known = self._changes.get(at)
            if known is not None and known.revision == one.revision:
                del self._changes[at]
                self._open.pop(at, None)

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
