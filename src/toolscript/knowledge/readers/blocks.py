"""Which kind of file it is, by the ending of its name."""

from enum import StrEnum
from pathlib import PurePosixPath

from toolscript.adapters.source_files.skipping import skip


class FileKind(StrEnum):
    MARKDOWN = "markdown"
    TEXT = "text"
    HTML = "html"
    PDF = "pdf"


ENDINGS = {
    ".md": FileKind.MARKDOWN,
    ".markdown": FileKind.MARKDOWN,
    ".mdown": FileKind.MARKDOWN,
    ".txt": FileKind.TEXT,
    ".text": FileKind.TEXT,
    ".html": FileKind.HTML,
    ".htm": FileKind.HTML,
    ".xhtml": FileKind.HTML,
    ".pdf": FileKind.PDF,
}
known_endings = frozenset(ENDINGS)


def is_known(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in ENDINGS


def kind_of(name: str) -> FileKind:
    kind = ENDINGS.get(PurePosixPath(name).suffix.lower())
    if kind is None:
        skip("nobody knows how to read a file of this kind", f"known are {', '.join(sorted(ENDINGS))}")
    return kind
