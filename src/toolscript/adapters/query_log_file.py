"""Searches in a file, one line of JSON each. Who takes old lines away moves the file; a new one is begun."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from toolscript.errors import SetupError, Unavailable
from toolscript.model.query_log import LoggedQuery

_HINT = "is there room on the disk, and may the service write there? See TOOLSCRIPT_QUERY_LOG"
_OWNER_ALONE = 0o600


class QueryLogFile:
    """Several processes may write to one file: what is written at once stays together."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The last line may have no end, because the disk was full.
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
            self._follow_the_path()
            rest = b"\n" + lines if self._torn else lines
            while rest:
                rest = rest[os.write(self._file, rest) :]
                self._torn = bool(rest)
        except OSError as error:
            raise Unavailable(f"query log {self._path}: {error.strerror}", hint=_HINT) from error

    def _follow_the_path(self) -> None:
        """Somebody may have moved the file away: then a new one is begun where it was."""
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
    """In ASCII: some who read lines take other letters for the end of one."""
    return b"".join(json.dumps(asdict(query)).encode() + b"\n" for query in queries)
