"""Documents written as lines of JSON, to a file that can be gone on with."""

import json
import os
from pathlib import Path
from typing import BinaryIO

from toolscript.errors import InvalidRequest
from toolscript.model.document_json import document_to_json
from toolscript.model.documents import Document, StoredDocument

# A line is looked for backwards in steps of this.
STEP = 64 * 1024


def line_of(document: StoredDocument) -> bytes:
    """As it can be put again."""
    whole = Document(document.id, document.text, document.metadata)
    return json.dumps(document_to_json(whole), ensure_ascii=False).encode() + b"\n"


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

    def last_id(self) -> str:
        """The document that was written last; none: the file is new."""
        end = self._file.seek(0, os.SEEK_END)
        if end == 0:
            return ""
        start = self._newline_before(end - 1) + 1
        self._file.seek(start)
        try:
            found = json.loads(self._file.read(end - start))["id"]
        except (ValueError, KeyError, TypeError):
            problem = f"{self._path} is not what an export has written"
            raise InvalidRequest(problem, hint="choose a file that is not there yet") from None
        return str(found)

    def write(self, line: bytes) -> None:
        self._file.write(line)

    def close(self) -> None:
        self._file.close()

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
