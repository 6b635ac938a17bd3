"""PDF as blocks: text by page, put back into paragraphs as far as its lines tell."""

import io
import re
from dataclasses import dataclass, replace

from pypdf import PasswordType, PdfReader, apply_configuration
from pypdf.errors import LimitReachedError

from toolscript.adapters.source_files.block_list import BlockList
from toolscript.adapters.source_files.described import Described, described
from toolscript.adapters.source_files.limits import ReadingLimits
from toolscript.adapters.source_files.pdf_headings import find_headings, largest_of_first_page
from toolscript.adapters.source_files.pdf_lines import PdfLine, lines_of_page, without_running_lines
from toolscript.adapters.source_files.pdf_paragraphs import Paragraphs
from toolscript.adapters.source_files.skipping import Skip, skip

# What programs write where a title should be: the name of their own file, or nothing that means anything.
_NO_TITLE = re.compile(r"^(?:untitled.*|.*\.(?:docx?|tex|dvi|indd|rtf|odt|qxd|fm|pages))$", re.IGNORECASE)
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint) - ")
BOMB = "it unpacks to far more than a document of its size holds"
BROKEN = "it is damaged or no PDF"


@dataclass(frozen=True)
class PdfSays:
    """`unread` counts the pages that nothing could be read of because they are broken."""

    described: Described
    pages: int
    unread: int


def read_pdf(data: bytes, blocks: BlockList, limits: ReadingLimits) -> PdfSays:
    # A picture is never needed, so nobody has to be started to unpack one.
    with apply_configuration(jbig2dec_binary=None):
        try:
            return _read(_opened(data), blocks, limits)
        except (Skip, MemoryError, RecursionError):
            raise
        except LimitReachedError as error:
            raise Skip(BOMB) from error
        except Exception as error:
            raise Skip(BROKEN) from error


def _opened(data: bytes) -> PdfReader:
    if b"%PDF-" not in data[:1024]:
        skip("it is no PDF, whatever its name says")
    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
        skip("it asks for a password", "save it without one")
    return reader


def _read(reader: PdfReader, blocks: BlockList, limits: ReadingLimits) -> PdfSays:
    count = len(reader.pages)
    if count > limits.pages:
        skip(f"it has more than {limits.pages:,} pages", "split it into several files")
    pages, unread = _pages(reader, count, limits)
    if not any(pages):
        skip("there is no text on its pages, only pictures", "let a program recognize their text (OCR) first")
    pages = without_running_lines(pages)
    Paragraphs(pages, find_headings(reader, pages), blocks).add_all()
    says = _described(reader)
    return PdfSays(replace(says, title=says.title or largest_of_first_page(pages)), count, unread)


def _pages(reader: PdfReader, count: int, limits: ReadingLimits) -> tuple[list[list[PdfLine]], int]:
    pages: list[list[PdfLine]] = []
    offset = unread = 0
    for number in range(count):
        try:
            lines, length = lines_of_page(reader.pages[number], number + 1, offset)
        except (Skip, MemoryError, RecursionError, LimitReachedError):
            raise
        except Exception:  # noqa: BLE001 - one page that is broken is no reason to leave the others out
            lines, length, unread = [], 0, unread + 1
        offset += length
        if offset > limits.letters:
            skip(f"it has more than {limits.letters:,} characters of text", "split it into several files")
        pages.append(lines)
    if unread and not any(pages):
        skip(BROKEN)
    return pages, unread


def _described(reader: PdfReader) -> Described:
    try:
        told = {str(name).lstrip("/").lower(): str(value) for name, value in (reader.metadata or {}).items()}
    except Exception:  # noqa: BLE001 - the text can be read without it
        return Described()
    says = described({name: told.get(name) for name in ("title", "author", "keywords")})
    title = _PROGRAM.sub("", says.title)
    return replace(says, title="" if _NO_TITLE.match(title) else title)
