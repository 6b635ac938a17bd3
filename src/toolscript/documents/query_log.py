"""The query log of documents: its entries, and the file that it may be written to."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from toolscript.core.auth.model import Principal
from toolscript.core.errors import SetupError, Unavailable
from toolscript.core.text import readable
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.query import DocumentQuery, LogDetail, LoggedQuery

_HINT = "is there room on the disk, and may the service write there? See TOOLSCRIPT_QUERY_LOG"
_OWNER_ALONE = 0o600


def log_entry(
    principal: Principal,
    query: DocumentQuery,
    answer: DocumentAnswer,
    keeps: LogDetail,
    *,
    at: str,
    query_id: str,
    took_ms: float,
) -> LoggedQuery:
    """Return the log entry of a search, with no more than the installation keeps."""
    with_text, with_results = keeps is not LogDetail.FIGURES, keeps is LogDetail.RESULTS
    return LoggedQuery(
        at=at,
        query_id=query_id,
        tenant=principal.tenant.name,
        plan=principal.plan.name,
        search_type=query.search_type.value,
        fusion=query.fusion.value if query.fusion else "",
        filters=len(query.filters.conditions),
        top_k=query.top_k,
        hits=len(answer.hits),
        total=answer.total.value,
        took_ms=took_ms,
        degraded=answer.degraded,
        reranked_by=answer.reranked_by,
        text=readable(query.text) if with_text else "",
        found=tuple(readable(hit.id) for hit in answer.hits) if with_results else (),
    )


class QueryLogFile:
    """A file that several processes may append to: each write stays contiguous."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # True if the last line is incomplete because the disk was full.
        self._torn = False
        try:
            self._file = _open(path)
        except OSError as error:
            raise SetupError(f"query log {path}: {error.strerror}", hint=_HINT) from error

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        await asyncio.to_thread(self._write, _lines(queries))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, lines: bytes) -> None:
        try:
            self._reopen_if_moved()
            rest = b"\n" + lines if self._torn else lines
            while rest:
                rest = rest[os.write(self._file, rest) :]
                self._torn = bool(rest)
        except OSError as error:
            raise Unavailable(f"query log {self._path}: {error.strerror}", hint=_HINT) from error

    def _reopen_if_moved(self) -> None:
        """Open a new file if the old one was moved away, as log rotation does."""
        try:
            moved = not os.path.samestat(os.stat(self._path), os.fstat(self._file))  # noqa: PTH116
        except FileNotFoundError:
            moved = True
        if moved:
            new = _open(self._path)
            os.close(self._file)
            self._file, self._torn = new, False


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _OWNER_ALONE)


def _lines(queries: Sequence[LoggedQuery]) -> bytes:
    """Return lines of ASCII JSON: some readers treat other characters as line ends."""
    return b"".join(json.dumps(asdict(query)).encode() + b"\n" for query in queries)
