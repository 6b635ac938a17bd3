"""Reads the bytes of one file into a Reading, by its kind."""

import hashlib
from collections.abc import Callable
from pathlib import PurePosixPath

from toolscript.core.items import JsonObject
from toolscript.knowledge.model.ingest import Reading
from toolscript.knowledge.readers.blocks import BlockList, FileKind, ReadingLimits, kind_of, skip
from toolscript.knowledge.readers.text import Described, decode, front_matter, one_line

_Read = Callable[[bytes, BlockList, ReadingLimits], tuple[Described, JsonObject]]


def read_bytes(name: str, data: bytes, limits: ReadingLimits) -> Reading:
    blocks = BlockList(limits)
    description, metadata = _READERS[kind_of(name)](data, blocks, limits)
    if not blocks.blocks:
        skip("there is no text in it")
    title = description.title or one_line(blocks.first_heading()) or PurePosixPath(name).stem
    return Reading(
        content_hash=hashlib.sha256(data).hexdigest(),
        title=title,
        blocks=tuple(blocks.blocks),
        authors=description.authors,
        topics=description.topics,
        type=description.type,
        metadata={"format": kind_of(name).value, **metadata},
    )


def _pdf(data: bytes, blocks: BlockList, limits: ReadingLimits) -> tuple[Described, JsonObject]:
    # Imported for the first file of its kind: each parser takes a while to load.
    from toolscript.knowledge.readers.pdf import read_pdf

    pdf = read_pdf(data, blocks, limits)
    unread = {"unread_pages": pdf.unread} if pdf.unread else {}
    return pdf.described, {"pages": pdf.pages, **unread}


def _html(data: bytes, blocks: BlockList, limits: ReadingLimits) -> tuple[Described, JsonObject]:
    from toolscript.knowledge.readers.html import read_html

    decoded = decode(data, is_html=True)
    return read_html(decoded.text, blocks, limits), {"encoding": decoded.encoding}


def _markdown(data: bytes, blocks: BlockList, limits: ReadingLimits) -> tuple[Described, JsonObject]:
    from toolscript.knowledge.readers.markdown import read_markdown

    decoded = decode(data)
    before = front_matter(decoded.text)
    read_markdown(decoded.text, before.end, blocks, limits)
    return before.description, {"encoding": decoded.encoding}


def _read_text_file(data: bytes, blocks: BlockList, limits: ReadingLimits) -> tuple[Described, JsonObject]:
    from toolscript.knowledge.readers.text import is_markdown, read_text

    decoded = decode(data)
    if is_markdown(decoded.text):
        return _markdown(data, blocks, limits)
    before = front_matter(decoded.text)
    read_text(decoded.text, before.end, blocks)
    return before.description, {"encoding": decoded.encoding}


_READERS: dict[FileKind, _Read] = {
    FileKind.PDF: _pdf,
    FileKind.HTML: _html,
    FileKind.MARKDOWN: _markdown,
    FileKind.TEXT: _read_text_file,
}
