"""Records of approved definitions: one file per server, written under a lock, readable by its user alone."""

import hashlib
import json
import logging
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from toolscript.core.atomic_files import read_json, write_json_atomically
from toolscript.core.errors import SetupError
from toolscript.core.file_locks import take
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import ServerSpec
from toolscript.core.own_files import make_private
from toolscript.gateway.approvals import Decision, Review, Status, definition_of, digest_of, review_of

FORMAT = 1
MAX_SEEN = 2_000
LOCK_SECONDS, LOOK_SECONDS = 5.0, 0.005

logger = logging.getLogger(__name__)

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Record:
    """By key of an item: its approved definition, the digest of a rejected one; when unapproved ones were seen."""

    approved: dict[str, str] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)

    def status_of(self, item: Item, digest: str) -> Status:
        if self.rejected.get(item.key) == digest:
            return Status.REJECTED
        approved = self.approved.get(item.key)
        if approved is None:
            return Status.NEW
        return Status.APPROVED if approved == definition_of(item) else Status.CHANGED


# A record that is there and cannot be read now: it approves nothing, and is not written over.
UNREADABLE = Record()


class ServerApprovals:
    """The record of one server: of one entry, in one config file, that runs one program or has one address.

    `file` is the config file, spelled the same for every client. Values of variables, which a client sends, do not
    make it another server.
    """

    def __init__(self, folder: Path, spec: ServerSpec, file: str, *, holds: bool) -> None:
        cwd = os.path.realpath(spec.cwd) if spec.cwd else None
        runs = [spec.written] if spec.written else [spec.command, spec.args, cwd, spec.url]
        parts = (file, spec.name, spec.transport, *runs)
        self.source = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
        self._about = {"format": FORMAT, "server": spec.name, "file": file}
        self._path = folder / f"{self.source}.json"
        self.holds = holds
        self._read: tuple[Stamp, Record] | None = None
        # What could not be written counts in this process all the same.
        self._unwritten: Record | None = None

    def observe(self, items: Sequence[Item]) -> None:
        """Approve what a server offers the first time; note when anything else was first seen."""
        if self._after(self.record(), items) is None:
            return
        with self._locked() as is_locked:
            before = self.record()
            now = self._after(before, items)
            if now is None:
                return
            if is_locked:
                self._write(now)
            elif before is None:
                self._unwritten = now
            self._log(now.seen.keys() - (before.seen if before else {}).keys(), items)

    def reviews(self, items: Sequence[Item]) -> list[Review]:
        """Return the items whose current definition is not approved."""
        record = self.record()
        return [] if record is None else [review for item in items if (review := self._review(record, item))]

    def is_approved(self, item: Item) -> bool:
        record = self.record()
        return record is not None and self._status(record, item) is Status.APPROVED

    def held(self, items: Sequence[Item]) -> set[str]:
        """Return the keys of the items that are held."""
        record = self.record()
        if record is None:
            return set()
        return {item.key for item in items if self._is_held(record, item, self._status(record, item))}

    def held_review(self, item: Item) -> Review | None:
        record = self.record()
        review = None if record is None else self._review(record, item)
        return review if review is not None and review.held else None

    def decide(self, decision: Decision, items: Collection[Item]) -> None:
        with self._locked() as is_locked:
            record = self.record() or Record()
            if not is_locked or record is UNREADABLE:
                what = "read" if is_locked else "locked, or another process holds its lock"
                raise SetupError(f"{self._path} cannot be {what}", hint="check the folder, and try again")
            approved, rejected = dict(record.approved), dict(record.rejected)
            for item in items:
                if decision is Decision.APPROVE:
                    approved[item.key] = definition_of(item)
                    rejected.pop(item.key, None)
                else:
                    rejected[item.key] = digest_of(self.source, item)
            self._write(replace(record, approved=approved, rejected=rejected), must=True)

    def record(self) -> Record | None:
        """Return the record; None for a server that was never listed.

        A file that cannot be read counts as a record of nothing: what it approved is held, and not approved anew.
        """
        try:
            stamp = _stamp(self._path)
            if stamp is None:
                return self._unwritten
            if self._read is None or self._read[0] != stamp:
                self._read = stamp, self._read_file()
        except OSError as error:
            self._log_unreadable(error)
            return UNREADABLE
        return self._read[1]

    def _status(self, record: Record, item: Item) -> Status:
        return record.status_of(item, digest_of(self.source, item) if item.key in record.rejected else "")

    def _is_held(self, record: Record, item: Item, status: Status) -> bool:
        """A change of what was rejected is held, whosever server it is."""
        return status is not Status.APPROVED and (self.holds or item.key in record.rejected)

    def _review(self, record: Record, item: Item) -> Review | None:
        status = self._status(record, item)
        if status is Status.APPROVED:
            return None
        held, digest = self._is_held(record, item, status), digest_of(self.source, item)
        seen_at, approved = record.seen.get(digest, time.time()), record.approved.get(item.key, "")
        return review_of(item, self.source, status, held=held, seen_at=seen_at, approved=approved)

    def _after(self, record: Record | None, items: Sequence[Item]) -> Record | None:
        """Return the record after these items were seen; None if it stays as it is."""
        if record is UNREADABLE:
            return None
        if record is None:
            return Record({item.key: definition_of(item) for item in items})
        unapproved = [item for item in items if self._status(record, item) is not Status.APPROVED][:MAX_SEEN]
        digests = {digest_of(self.source, item): item for item in unapproved}
        news = {digest: item for digest, item in digests.items() if digest not in record.seen}
        if not news:
            return None
        seen = {**record.seen, **dict.fromkeys(news, time.time())}
        return replace(record, seen=dict([*seen.items()][-MAX_SEEN:]))

    def _log(self, digests: Collection[str], items: Sequence[Item]) -> None:
        for item in items if digests else ():
            if digest_of(self.source, item) in digests:
                logger.warning("not approved: %s__%s", item.server, item.name)

    def _read_file(self) -> Record:
        try:
            data = read_json(self._path)
            if data["format"] != FORMAT:
                raise ValueError("another format")
            return Record(_texts(data["approved"]), _texts(data["rejected"]), _times(data["seen"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._log_unreadable(error)
            return Record()

    def _log_unreadable(self, error: Exception) -> None:
        logger.warning(
            "the approvals cannot be read: all tools of the server count as new",
            extra={"file": str(self._path), "reason": str(error)},
        )

    def _write(self, record: Record, *, must: bool = False) -> None:
        parts = {"approved": record.approved, "rejected": record.rejected, "seen": record.seen}
        try:
            write_json_atomically(self._path, {**self._about, **parts})
            self._unwritten = None
        except OSError as error:
            if must:
                raise SetupError(
                    f"{self._path} cannot be written: {error.strerror}", hint="check who may write there"
                ) from error
            self._unwritten = record
            logger.warning(
                "the approvals cannot be written", extra={"file": str(self._path), "reason": str(error)}
            )

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Hold the lock of this server's file, to read and write it as one step. Yield whether it is held."""
        try:
            make_private(self._path.parent)
            lock = self._path.with_suffix(".lock").open("ab")
        except OSError:
            yield False
            return
        with lock:
            yield _taken(lock)


def _stamp(path: Path) -> Stamp | None:
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return about.st_mtime_ns, about.st_ino, about.st_size


def _taken(lock: IO[bytes]) -> bool:
    until = time.monotonic() + LOCK_SECONDS
    try:
        while not take(lock):
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_SECONDS)
    except OSError:
        # Not every file system has locks.
        return False
    return True


def _texts(data: Any) -> dict[str, str]:
    if not all(isinstance(text, str) for text in data.values()):
        raise TypeError("not a text")
    return dict(data)


def _times(data: Any) -> dict[str, float]:
    return {str(digest): float(at) for digest, at in data.items()}
