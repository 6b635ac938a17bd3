"""Plain text as blocks: decoding, headings, front matter and its metadata."""

import codecs
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import yaml
from charset_normalizer import from_bytes

from toolscript.knowledge.model.ingest import BlockKind
from toolscript.knowledge.readers.blocks import BlockList, Lines, skip
from toolscript.knowledge.readers.wire import MAX_NAME, MAX_NAMES, MAX_TITLE

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_UNDERLINED = re.compile(r"^(?P<title>\S[^\n]{0,150})\n(?P<line>=+|-+|~+|\*+|\^+|#+)[ \t]*(?:\n|\Z)")
_CHAPTER = re.compile(
    r"^(?:(?P<outer>part|book|volume)|(?P<chapter>chapter|appendix|kapitel)|section)\s+(?:\d+|[IVXLCDM]+|[A-Z])\b[^\n]{0,100}$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+\S")
_ITEM_START = re.compile(r"^(?=[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+\S)", re.MULTILINE)
_SET_IN = re.compile(r"(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+\Z")
# Notes are often Markdown, whatever their extension: more than one heading between empty lines.
_MARKDOWN_HEADING = re.compile(r"(?:\A|\n\n)#{1,6} [^\n]+(?=\n\n|\n\Z|\n[^\n#])")

NO_TEXT = "it holds something other than text"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 64 * 1024
# Control characters: no text has them, but every program and picture.
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROLS = 0.01
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_LINE_ENDS = re.compile(r"\r\n?")
# The default encoding, then the candidates. Only common encodings: a rare one fits by chance.
_USUAL = "cp1252"
_OTHERS = ("cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256")
_EASTERN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
# A guess needs so many non-ASCII bytes: fewer fit any code page.
_MIN_TO_GUESS = 12
_SURE_OF_A_GUESS = 0.1

_SPACE = re.compile(r"\s+")
_BETWEEN_TOPICS = re.compile(r"[,;]")
# Between people a comma can be within a name ("Doe, Jane"), so it separates only names of several words.
_BETWEEN_PEOPLE = re.compile(r"\s*(?:;|&|\band\b)\s*")

MAX_LETTERS = 64 * 1024
_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"^([A-Za-z]+):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)


def is_markdown(text: str) -> bool:
    return len(_MARKDOWN_HEADING.findall(text, 0, 200_000)) >= 2


def read_text(text: str, offset: int, blocks: BlockList) -> None:
    lines = Lines(text)
    underlines: dict[str, int] = {}
    for match in _PARAGRAPH.finditer(text, offset):
        start, paragraph = match.start(), match.group()
        heading = _UNDERLINED.match(paragraph)
        if heading and len(heading["line"]) >= min(3, len(heading["title"])):
            level = underlines.setdefault(heading["line"][0], len(underlines) + 1)
            _add(blocks, lines, BlockKind.HEADING, heading["title"].strip(), start, level)
            start, paragraph = start + heading.end(), paragraph[heading.end() :]
        chapter = _CHAPTER.match(paragraph.strip())
        if chapter:
            _add(blocks, lines, BlockKind.HEADING, paragraph.strip(), start, _level(chapter))
            continue
        for position, kind, part in _parts(paragraph):
            _add(blocks, lines, kind, part, start + position)


def _level(chapter: re.Match[str]) -> int:
    if chapter["outer"]:
        return 1
    return 2 if chapter["chapter"] else 3


def _parts(paragraph: str) -> Iterator[tuple[int, BlockKind, str]]:
    """Yield the text before a list, then each of its items."""
    if _SET_IN.match(paragraph) and not _ITEM.match(paragraph):
        yield 0, BlockKind.CODE, paragraph
        return
    starts = [match.start() for match in _ITEM_START.finditer(paragraph)]
    borders = sorted({0, *starts, len(paragraph)})
    for start, end in pairwise(borders):
        part = paragraph[start:end].rstrip("\n")
        yield start, BlockKind.LIST if start in starts else BlockKind.TEXT, part


def _add(blocks: BlockList, lines: Lines, kind: BlockKind, text: str, start: int, level: int = 0) -> None:
    blocks.add(kind, text, level=level, line=lines.line_at(start), start=start, end=start + len(text))


@dataclass(frozen=True)
class Decoded:
    """`text` has a single newline for each line end, whichever the file uses."""

    text: str
    encoding: str


def decode(data: bytes, is_html: bool = False) -> Decoded:
    decoded = _marked(data) or _unicode(data) or (_declared(data) if is_html else None) or _guessed(data)
    text = _LINE_ENDS.sub("\n", decoded.text)
    if len(_CONTROLS.findall(text[:_SAMPLE])) > _MAX_CONTROLS * len(text[:_SAMPLE]):
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
    """Decode UTF-16 or UTF-8 without a BOM. In UTF-16 most texts have every other byte zero, in others none."""
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
    match = _DECLARED.search(data[:4096])
    if not match:
        return None
    try:
        encoding = codecs.lookup(match.group(1).decode("ascii")).name
        # Browsers read a page that declares Latin 1 or ASCII as Windows-1252, a superset.
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
        skip("its encoding cannot be detected", "save it as UTF-8")


def _likeliest(sample: bytes) -> str:
    if len(sample) - len(sample.translate(None, bytes(range(128, 256)))) < _MIN_TO_GUESS:
        return _USUAL
    guesses = [
        guess
        for guess in from_bytes(sample, cp_isolation=[_USUAL, *_OTHERS, *_EASTERN])
        if guess.chaos <= _SURE_OF_A_GUESS
    ]
    best = [
        guess for guess in guesses if (guess.chaos, guess.coherence) == (guesses[0].chaos, guesses[0].coherence)
    ]
    if not best or any(_USUAL in guess.could_be_from_charset for guess in best):
        return _USUAL
    return best[0].encoding


@dataclass(frozen=True)
class Described:
    title: str = ""
    authors: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    type: str = ""


def described(fields: Mapping[str, object]) -> Described:
    """Return the metadata from front matter or document fields, by their usual names; ignore other fields."""
    by_name = {str(name).strip().lower(): value for name, value in fields.items()}
    return Described(
        title=one_line(_scalar(by_name.get("title"))),
        authors=_names(by_name, ("authors", "author"), people),
        topics=_names(by_name, ("topics", "tags", "keywords"), topics),
        type=one_line(_scalar(by_name.get("type")))[:MAX_NAME].lower(),
    )


def one_line(text: str, maximum: int = MAX_TITLE) -> str:
    return _SPACE.sub(" ", text).strip()[:maximum].rstrip()


def people(text: str) -> list[str]:
    parts = _BETWEEN_PEOPLE.split(text)
    split = [name for part in parts for name in _by_comma(part)]
    return _distinct(split)


def topics(text: str) -> list[str]:
    return _distinct(_BETWEEN_TOPICS.split(text))


def _by_comma(part: str) -> list[str]:
    names = part.split(",")
    return names if all(" " in name.strip() for name in names) else [part]


def _names(
    by_name: Mapping[str, object], keys: Iterable[str], split: Callable[[str], list[str]]
) -> tuple[str, ...]:
    names: list[str] = []
    for key in keys:
        value = by_name.get(key)
        if isinstance(value, str):
            names += split(value)
        elif isinstance(value, list | tuple):
            names += [_named(entry) for entry in value[:MAX_NAMES]]
    return tuple(_distinct(names))


def _named(value: object) -> str:
    """Return a name; an entry of a list can be a mapping with `name`."""
    return _scalar(value.get("name")) if isinstance(value, dict) else _scalar(value)


def _scalar(value: object) -> str:
    return "" if value is None or isinstance(value, dict | list | tuple | set | bytes) else str(value)


def _distinct(names: Iterable[str]) -> list[str]:
    cleaned = (one_line(name, MAX_NAME) for name in names)
    return list(dict.fromkeys(name for name in cleaned if name))[:MAX_NAMES]


@dataclass(frozen=True)
class FrontMatter:
    """`end` is the offset of the text after it; 0 without front matter."""

    description: Described
    end: int


def front_matter(text: str) -> FrontMatter:
    """Parse front matter. An invalid block belongs to the text: any text can begin with a rule."""
    for pattern, read in ((_YAML, _from_yaml), (_TOML, _from_toml)):
        match = pattern.match(text, 0, MAX_LETTERS)
        fields = read(match.group(1)) if match else None
        if match and isinstance(fields, dict):
            return FrontMatter(described(fields), match.end())
    return FrontMatter(Described(), 0)


class _PlainLoader(yaml.SafeLoader):
    """A loader that refuses aliases: they can exhaust the memory, and front matter does not need them."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _from_yaml(text: str) -> object:
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - it makes nothing but plain values
    except (yaml.YAMLError, ValueError, RecursionError):
        return _line_by_line(text)


def _line_by_line(text: str) -> dict[str, str] | None:
    """Parse lines such as `title: One: and another`, which is invalid YAML but common."""
    fields = {name.lower(): value.strip("'\"") for name, value in _NAMED.findall(text)}
    return fields or None


def _from_toml(text: str) -> object:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
