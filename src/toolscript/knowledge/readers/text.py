"""Bytes of a text file as text: what its first bytes say, else UTF-8, else what it most probably is."""

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

from toolscript.adapters.source_files.skipping import skip

NO_TEXT = "it holds something other than text"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 64 * 1024
# What no text has, but every program and picture: bytes that control a terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.01
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r\n?")
# Where nobody can tell, the first is the likeliest. Only what much text was written in: a rare one fits by chance.
_USUAL = "cp1252"
_OTHERS = ("cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256")
_EASTERN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
# What a guess is trusted with: fewer letters beyond ASCII fit any code page.
_FEWEST_TO_GUESS = 12
_SURE_OF_A_GUESS = 0.1


@dataclass(frozen=True)
class Decoded:
    """`text` has one letter for each line end, whichever the file has."""

    text: str
    encoding: str


def decode(data: bytes, is_html: bool = False) -> Decoded:
    decoded = _marked(data) or _unicode(data) or (_declared(data) if is_html else None) or _guessed(data)
    text = _LINE_ENDS.sub("\n", decoded.text)
    if len(_CONTROLS.findall(text[:_SAMPLE])) > _MOST_CONTROLS * len(text[:_SAMPLE]):
        skip(NO_TEXT)
    return Decoded(_CONTROLS.sub(" ", text), decoded.encoding)


def _marked(data: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Decoded(data[len(mark) :].decode(encoding), encoding)
            except UnicodeDecodeError:
                skip(f"it begins like {encoding.upper()}, and is not")
    return None


def _unicode(data: bytes) -> Decoded | None:
    """Without a mark: of UTF-16, every other byte of most texts is zero, and no other encoding has any."""
    sample = data[:_SAMPLE]
    if b"\0" in sample:
        return _as(data, "utf-16-le" if _zeros(sample[1::2]) >= _zeros(sample[::2]) else "utf-16-be")
    try:
        return Decoded(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return None


def _zeros(half: bytes) -> int:
    return half.count(0)


def _as(data: bytes, encoding: str) -> Decoded:
    sample = data[:_SAMPLE]
    if max(_zeros(sample[::2]), _zeros(sample[1::2])) < len(sample) // 8:
        skip(NO_TEXT)
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        skip(NO_TEXT)


def _declared(data: bytes) -> Decoded | None:
    found = _DECLARED.search(data[:4096])
    if not found:
        return None
    try:
        encoding = codecs.lookup(found.group(1).decode("ascii")).name
        # A page that says so is read as every browser does: with what the West's code page has beyond Latin 1.
        encoding = _USUAL if encoding in {"iso8859-1", "ascii"} else encoding
        decoded = data.decode(encoding)
        return Decoded(decoded, encoding) if isinstance(decoded, str) else None
    except (LookupError, UnicodeError, ValueError, AttributeError):
        return None


def _guessed(data: bytes) -> Decoded:
    whole_lines = data[: _SAMPLE if len(data) <= _SAMPLE else data.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    likeliest = _likeliest(whole_lines)
    try:
        return Decoded(data.decode(likeliest), likeliest)
    except UnicodeDecodeError:
        skip("its encoding cannot be told", "save it as UTF-8")


def _likeliest(sample: bytes) -> str:
    if len(sample) - len(sample.translate(None, bytes(range(128, 256)))) < _FEWEST_TO_GUESS:
        return _USUAL
    found = [
        one
        for one in from_bytes(sample, cp_isolation=[_USUAL, *_OTHERS, *_EASTERN])
        if one.chaos <= _SURE_OF_A_GUESS
    ]
    best = [one for one in found if (one.chaos, one.coherence) == (found[0].chaos, found[0].coherence)]
    if not best or any(_USUAL in one.could_be_from_charset for one in best):
        return _USUAL
    return best[0].encoding
