"""Documents written as lines of JSON, to a file that can be gone on with."""

import json
import os
from pathlib import Path
from typing import BinaryIO

from toolscript.errors import InvalidRequest
from toolscript.model.document_json import document_from_json, document_to_json
from toolscript.model.documents import Document

# A line is looked for backwards in steps of this.
STEP = 64 * 1024
# By so many ids it is seen whose export it is.
LOOKED_AT = 50


def line_of(document: Document) -> bytes:
    """As it can be put again."""
    return json.dumps(document_to_json(document), ensure_ascii=False).encode() + b"\n"


class ExportFile:
    """What an earlier run has written stays; half a line at its end does not."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise InvalidRequest(f"cannot write to {path}: {error.strerror}", hint="choose another file") from None
        self._path = path
        self._file.truncate(self._end_of_lines())
        self._file.seek(0, os.SEEK_END)

    def last_ids(self) -> list[str]:
        """The documents that were written last, in their order; none: the file is new."""
        ids: list[str] = []
        end = self._file.seek(0, os.SEEK_END)
        while end > 0 and len(ids) < LOOKED_AT:
            start = self._newline_before(end - 1) + 1
            self._file.seek(start)
            ids.append(self._id_of(self._file.read(end - start)))
            end = start
        self._file.seek(0, os.SEEK_END)
        return ids[::-1]

    def write(self, line: bytes) -> None:
        self._file.write(line)

    def close(self) -> None:
        self._file.close()

    def _id_of(self, line: bytes) -> str:
        try:
            return document_from_json(json.loads(line)).id
        except (ValueError, InvalidRequest):
            problem = f"{self._path} is not what an export has written"
            raise InvalidRequest(problem, hint="choose a file that is not there yet") from None

    def _end_of_lines(self) -> int:
        return self._newline_before(self._file.seek(0, os.SEEK_END)) + 1

    def _newline_before(self, end: int) -> int:
        """Where the last newline before `end` is; -1 where there is none."""
        while end > 0:
            start = max(0, end - STEP)
            self._file.seek(start)
            at = self._file.read(end - start).rfind(b"\n")
            if at >= 0:
                return start + at
            end = start
        return -1
