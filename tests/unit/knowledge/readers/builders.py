"""Files to read: small ones in memory, and PDFs of every kind."""

import io
import zlib
from collections.abc import Sequence

from fpdf import FPDF

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import BlockKind, Reading
from toolscript.knowledge.readers.blocks import ReadingLimits
from toolscript.knowledge.readers.wire import reading_from_json
from toolscript.knowledge.readers.worker import answer_for

LIMITS = ReadingLimits()
WORDS = "The quick brown fox jumps over the lazy dog while nobody in the whole village looks at it at all. "

FONTS = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"


def read(name: str, content: bytes | str, limits: ReadingLimits = LIMITS) -> Reading:
    """Read as the reader process does, but in this process."""
    data = content.encode() if isinstance(content, str) else content
    return reading_from_json(answer_for(name, io.BytesIO(data), limits), limits)


def read_or_reason(name: str, data: bytes) -> object:
    """Return the reading or the reason; anything else is an error."""
    try:
        return read(name, data).blocks
    except FileSkipped as skipped:
        return skipped.message


def shown(reading: Reading) -> list[tuple[str, str]]:
    return [(f"{block.kind.value}{block.level or ''}", block.text) for block in reading.blocks]


def texts(reading: Reading, kind: BlockKind) -> list[str]:
    return [block.text for block in reading.blocks if block.kind is kind]


def book(chapters: Sequence[tuple[str, str]], *, outline: bool, title: str = "", author: str = "") -> FPDF:
    """Return a PDF with a chapter per page, each with a header and a page number."""
    pdf = FPDF()
    pdf.set_compression(True)
    pdf.set_title(title)
    pdf.set_author(author)
    for number, (heading, text) in enumerate(chapters, 1):
        pdf.add_page()
        pdf.set_font("Helvetica", size=9)
        pdf.multi_cell(0, 5, "A running line", new_x="LMARGIN", new_y="NEXT")
        if outline:
            pdf.start_section(heading)
        pdf.set_font("Helvetica", "B", size=18)
        pdf.multi_cell(0, 12, heading, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Times", size=11)
        for paragraph in text.split("\n\n"):
            pdf.multi_cell(0, 5, paragraph, new_x="LMARGIN", new_y="NEXT")
            pdf.ln(6)
        pdf.set_font("Helvetica", size=9)
        pdf.multi_cell(0, 5, str(number), align="C", new_x="LMARGIN", new_y="NEXT")
    return pdf


def pdf_of(content: bytes, *, filters: str = "", extra: str = "") -> bytes:
    """Return a PDF of one page with any content stream."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R " + extra.encode() + b">>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources " + FONTS + b" >>",
        f"<< /Length {len(content)} {filters} >>\nstream\n".encode() + content + b"\nendstream",
    ]
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    return bytes(out + f"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF".encode())


def pdf_bomb(megabytes: int = 80) -> bytes:
    """Return a PDF with a few hundred bytes per unpacked megabyte, compressed twice."""
    packing = zlib.compressobj(1)
    packed = b"".join(packing.compress(b" " * 1024 * 1024) for _ in range(megabytes)) + packing.flush()
    return pdf_of(zlib.compress(packed), filters="/Filter [/FlateDecode /FlateDecode]")
