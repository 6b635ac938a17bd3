"""Document files: text files and JSON lines read for an upload, JSON lines written by an export."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.documents.model.document import (
    MAX_TEXT,
    Document,
    document_from_json,
    document_to_json,
    parse_line,
)
from toolscript.documents.model.upload import Place

STDIN = "-"
TEXTS, JSON_LINES = (".txt", ".md", ".markdown"), (".jsonl", ".ndjson")
# A longer file has more than MAX_TEXT characters in any case.
MAX_FILE_BYTES = 4 * MAX_TEXT
MAX_LINE = 4 * 1024 * 1024
MAX_DEPTH = 64
NO_TEXT = "is not UTF-8 text"
_HEADING = re.compile(r"^#{1,2}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)

# Block size of the backward search for a line.
STEP = 64 * 1024
# Number of ids that identify whose export a file is.
IDENTIFYING_IDS = 50


@dataclass(frozen=True)
class FoundDocument:
    document: Document
    place: Place


@dataclass(frozen=True)
class LeftOut:
    """Input that is not sent: a line that is not a document (`refused`), or a file that cannot be one."""

    where: str
    reason: str
    place: Place
    refused: bool = False


Found = FoundDocument | LeftOut


@dataclass(frozen=True)
class _File:
    path: Path
    name: str
    place: Place


class DocumentFiles:
    """`after` is where an earlier run ended, `began_at` when it started: files changed since are read again."""

    def __init__(
        self,
        paths: Sequence[str],
        after: Place | None = None,
        began_at: float = 0.0,
        stdin: BinaryIO | None = None,
    ) -> None:
        self._paths = paths
        self._after = after
        self._began_at = began_at
        self._stdin = stdin
        for path in paths:
            if path != STDIN and not Path(path).exists():
                raise NotFound(f"there is no {path}", hint="name files, folders, or - for lines of JSON on stdin")
        _require_distinct(paths)

    def count(self) -> int | None:
        """Return about how many documents there are to read; None for stdin."""
        if STDIN in self._paths:
            return None
        return sum(_count(file) for file in self._files() if isinstance(file, _File))

    def read(self) -> Iterator[Found]:
        for file in self._files():
            if isinstance(file, LeftOut):
                yield from () if self._is_before(file.place) else (file,)
            elif file.path.suffix.lower() in JSON_LINES or file.name == STDIN:
                yield from self._lines(file)
            elif not self._is_before(file.place) or self._is_newer(file):
                yield _text(file)

    def _files(self) -> Iterator[_File | LeftOut]:
        for number, path in enumerate(self._paths):
            place = Place(number)
            if path == STDIN:
                yield _File(Path(STDIN), STDIN, place)
            elif Path(path).is_dir():
                yield from _below(Path(path), _name(Path(path)), place)
            else:
                yield _File(Path(path), _name(Path(path)), place)

    def _is_before(self, place: Place) -> bool:
        after = self._after
        return after is not None and (place.path, place.steps) <= (after.path, after.steps)

    def _is_newer(self, file: _File) -> bool:
        try:
            status = file.path.stat()
        except OSError:
            return True
        return max(status.st_mtime, status.st_ctime) >= self._began_at

    def _lines(self, file: _File) -> Iterator[Found]:
        """Yield the rest of a partly read file. stdin is read from its start: its content may have changed."""
        begin, after = file.place, self._after
        if file.name == STDIN:
            yield from _entries(self._stdin or sys.stdin.buffer, "stdin", begin)
            return
        if after is not None and not self._is_newer(file):
            if (begin.path, begin.steps) < (after.path, after.steps):
                return
            if (begin.path, begin.steps) == (after.path, after.steps):
                begin = after
        try:
            with file.path.open("rb") as opened:
                if begin.offset:
                    opened.seek(begin.offset)
                yield from _entries(opened, file.name, begin)
        except OSError as error:
            yield LeftOut(file.name, f"cannot be read: {error.strerror}", begin)


def _require_distinct(paths: Sequence[str]) -> None:
    """Raise InvalidRequest if two paths have one name: their documents would get the same ids."""
    names = [_name(Path(path)) for path in paths if path != STDIN]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidRequest(
            f"{twice[0]!r} would be the name of two of these paths",
            hint="upload them one after the other, from their folders",
        )


def _name(path: Path) -> str:
    """Return the path relative to the working directory; outside of it, the last name."""
    absolute, working_directory = path.resolve(), Path.cwd().resolve()
    inside = absolute.is_relative_to(working_directory)
    return absolute.relative_to(working_directory).as_posix() if inside else absolute.name


def _below(folder: Path, name: str, place: Place) -> Iterator[_File | LeftOut]:
    if len(place.steps) >= MAX_DEPTH:
        yield LeftOut(name, f"more than {MAX_DEPTH} folders deep", place)
        return
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        yield LeftOut(name, f"cannot be read: {error.strerror}", place)
        return
    for entry in entries:
        if not entry.name.startswith("."):
            yield from _entry(entry, entry.name if name in ("", ".") else f"{name}/{entry.name}", place)


def _entry(entry: "os.DirEntry[str]", name: str, folder_place: Place) -> Iterator[_File | LeftOut]:
    place = Place(folder_place.path, (*folder_place.steps, entry.name))
    path = Path(entry.path)
    # A symlink to a folder may form a cycle.
    if entry.is_dir(follow_symlinks=False):
        yield from _below(path, name, place)
    elif path.suffix.lower() not in (*TEXTS, *JSON_LINES):
        yield LeftOut(name, f"is none of {', '.join((*TEXTS, *JSON_LINES))}", place)
    elif not path.is_file():
        yield LeftOut(name, "is not a file", place)
    else:
        yield _File(path, name, place)


def _count(file: _File) -> int:
    # Anything but a regular file can be read only once.
    if file.path.suffix.lower() not in JSON_LINES or not file.path.is_file():
        return 1
    count, last = 0, b"\n"
    try:
        with file.path.open("rb") as opened:
            while block := opened.read(1 << 20):
                count, last = count + block.count(b"\n"), block
    except OSError:
        return 1
    return count + (not last.endswith(b"\n"))


def _text(file: _File) -> Found:
    """Return a whole file as one document."""
    try:
        with file.path.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InvalidRequest(f"is larger than {MAX_FILE_BYTES:,} bytes")
        if b"\0" in content:
            raise InvalidRequest(NO_TEXT)
        text = str(content, "utf-8-sig")
        if not text.strip():
            raise InvalidRequest("is blank")
        metadata = {"path": file.name, "title": _title(file.path, text)}
        return FoundDocument(Document(file.name, text, metadata), file.place)
    except OSError as error:
        return LeftOut(file.name, f"cannot be read: {error.strerror}", file.place)
    except UnicodeDecodeError:
        return LeftOut(file.name, NO_TEXT, file.place)
    except InvalidRequest as error:
        return LeftOut(file.name, error.message, file.place)


def _title(path: Path, text: str) -> str:
    """Return the first heading, else the name of the file."""
    heading = _HEADING.search(text[:10_000]) if path.suffix.lower() != ".txt" else None
    return heading.group(1)[:500] if heading else re.sub(r"[-_\s]+", " ", path.stem).strip() or path.stem


def _entries(opened: BinaryIO, name: str, begin: Place) -> Iterator[Found]:
    number, offset = begin.line, begin.offset
    for line, length in _bounded(opened):
        number, offset = number + 1, offset + length
        if line is not None and not line.strip():
            continue
        place = Place(begin.path, begin.steps, offset, number)
        where = f"{name} line {number}"
        if line is None:
            yield LeftOut(where, f"is longer than {MAX_LINE >> 20} MiB", place, refused=True)
            continue
        entry = parse_line(line)
        if isinstance(entry, Document):
            yield FoundDocument(entry, place)
        else:
            yield LeftOut(where, entry.problem, place, refused=True)


def _bounded(opened: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line with its length; None in place of a line that is too long."""
    while line := opened.readline(MAX_LINE + 1):
        length = len(line)
        kept: bytes | None = line if length <= MAX_LINE else None
        while kept is None and line and not line.endswith(b"\n"):
            line = opened.readline(MAX_LINE)
            length += len(line)
        yield kept, length


def names_of(paths: Iterable[str]) -> list[str]:
    """Return absolute paths, to store them independently of the working directory."""
    return [path if path == STDIN else str(Path(path).resolve()) for path in paths]


def document_line(document: Document) -> bytes:
    """Return the document as a JSON line that can be put again."""
    return json.dumps(document_to_json(document), ensure_ascii=False).encode() + b"\n"


class ExportFile:
    """An export file. It keeps the lines of an earlier run, except an incomplete last line."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise InvalidRequest(f"cannot write to {path}: {error.strerror}", hint="choose another file") from None
        self._path = path
        self._file.truncate(self._end_of_lines())
        self._file.seek(0, os.SEEK_END)

    def last_ids(self) -> list[str]:
        """Return the ids of the documents written last, in their order; empty if the file is new."""
        ids: list[str] = []
        end = self._file.seek(0, os.SEEK_END)
        while end > 0 and len(ids) < IDENTIFYING_IDS:
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
            problem = f"{self._path} was not written by an export"
            raise InvalidRequest(problem, hint="choose a file that does not exist yet") from None

    def _end_of_lines(self) -> int:
        return self._newline_before(self._file.seek(0, os.SEEK_END)) + 1

    def _newline_before(self, end: int) -> int:
        """Return the position of the last newline before `end`; -1 if there is none."""
        while end > 0:
            start = max(0, end - STEP)
            self._file.seek(start)
            offset = self._file.read(end - start).rfind(b"\n")
            if offset >= 0:
                return start + offset
            end = start
        return -1
