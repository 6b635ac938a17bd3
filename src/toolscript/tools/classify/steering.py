"""What of an item's text describes it. Text that talks to the classifier instead is left out.

Nothing that is left out can be told from an honest description with certainty, and need not be: what is wrongly
left out costs a sentence, and name, server and the other sentences are still there.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from toolscript.core.item_text import MAX_PARAMETERS
from toolscript.core.items import Item, JsonObject
from toolscript.core.retrieval.terms import split_identifier, terms_of_word, without_stop_words, words_of
from toolscript.core.taxonomy import Skill
from toolscript.core.text import readable

# A name with these is written as nobody speaks: "Crypto & Blockchain".
SIGNS = re.compile(r"[&+/|,:]")
# With fewer words, the signs have to be there as well.
ENOUGH_WORDS = 3

Words = tuple[str, ...]

Span = tuple[int, int]

QUOTED_KEY = re.compile(r"[\"'`][\w -]{1,40}[\"'`]\s*:")

_BLOCK = re.compile(
    r"```.*?(?:```|\Z)|<!--.*?(?:-->|\Z)"
    r"|<(system|assistant|user|instructions?|admin|developer|human|classification)\b[^>]{0,80}>.*?(?:</\1\s*>|\Z)"
    r"|\[inst\].*?(?:\[/inst\]|\Z)|<<sys>>.*?(?:<</sys>>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_END = re.compile(
    r"[.!?]+[\"')\]]*\s+|[。！？；]+\s*|;\s+|\s+(?:[-–—|•·*#~]{1,8}|//)\s+|\s*\n\s*|\s+(?=[(\[])|(?<=[)\]])\s+"
)
_BRACE = re.compile(r"[{}\[\]]")

# A list of words describes nothing.
LONG_LIST, WORDS_A_PART = 9, 2.5
MIN_WORDS = 3

_BLOB = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{36,}={0,2}|\b[0-9a-fA-F]{32,}\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile(r"[,/|;、，]|\n|\s-\s")

MAX_READ = 6_000
MAX_DESCRIBED, MAX_NAME = 1_000, 200
# Nobody says a sentence so often to describe something.
TOO_OFTEN = 3

# Letters nobody sees. What is written with the second kind is meant for a machine alone.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]")
_SECRET = re.compile("[\U000e0000-\U000e007f]+")


class SkillNames:
    """By the first word of each, so that a text is held against few of them, however many skills there are."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._certain: dict[str, set[tuple[Words, str]]] = {}
        self._phrases: dict[str, set[str]] = {}
        for skill in skills:
            words = tuple(words_of(skill.name))
            if len(words) > 1 and SIGNS.search(skill.name):
                literally = "" if len(words) >= ENOUGH_WORDS else skill.name.casefold()
                self._certain.setdefault(words[0], set()).add((words, literally))
            elif len(words) > 1 and skill.name != skill.name.lower():
                self._phrases.setdefault(words[0], set()).add(skill.name)
            if "_" in skill.id:
                # An id is one word when it is written as one.
                word = skill.id.replace("_", "")
                self._certain.setdefault(word, set()).add(((word,), ""))

    def are_in(self, text: str, but: frozenset[str] = frozenset()) -> bool:
        """`but` are words that are the item's own: a tool may be called like a skill."""
        words, letters = tuple(words_of(text)), text.casefold()
        return any(
            words[index : index + len(name)] == name and literally in letters and not but.issuperset(name)
            for index, word in enumerate(words)
            for name, literally in self._certain.get(word, ())
        )

    def may_be_in(self, text: str) -> bool:
        """A name of plain words, with its capitals: somebody may have meant the skill."""
        return any(phrase in text for word in set(words_of(text)) for phrase in self._phrases.get(word, ()))


def pieces_of(text: str) -> list[Span]:
    """Without a gap between them. A block of code, of markup or of JSON is one piece."""
    found: list[Span] = []
    at = 0
    for start, end in _blocks(text):
        found += [*_sentences(text, at, start), (start, end)]
        at = end
    return [*found, *_sentences(text, at, len(text))]


def runs_of(spans: Sequence[Span], left_out: Sequence[bool]) -> Iterator[Span]:
    """Neighbours that are kept, as one span each."""
    start_background: int | None = None
    for (start, _), is_out in zip(spans, left_out, strict=True):
        if is_out and start_background is not None:
            yield start_background, start
        start_background = None if is_out else start if start_background is None else start_background
    if start_background is not None:
        yield start_background, spans[-1][1]


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    for separator in _END.finditer(text, start, end):
        if separator.end() > start:
            yield start, separator.end()
            start = separator.end()
    if start < end:
        yield start, end


def _blocks(text: str) -> list[Span]:
    """The outermost, in order."""
    spans = [match.span() for match in _BLOCK.finditer(text)] + _objects(text)
    kept: list[Span] = []
    for span in sorted(spans, key=lambda one: (one[0], -one[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _objects(text: str) -> list[Span]:
    """Outermost pairs of braces or square brackets with a quoted key in them."""
    opened: list[int] = []
    found: list[Span] = []
    for match in _BRACE.finditer(text):
        if match[0] in "{[":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            if not opened and QUOTED_KEY.search(text, start, match.end()):
                found.append((start, match.end()))
    return found


@dataclass(frozen=True)
class _Signs:
    """As they stand in steering.toml."""

    sorting: re.Pattern[str]
    kinds: re.Pattern[str]
    orders: re.Pattern[str]
    this_item: re.Pattern[str]
    sorts_itself: re.Pattern[str]
    plain: re.Pattern[str]
    odd: re.Pattern[str]


def steers(piece: str) -> bool:
    plain, signs = _folded(piece), _signs()
    if signs.plain.search(plain) or _has_blob(piece):
        return True
    if not signs.sorting.search(plain):
        return bool(signs.kinds.search(plain) and signs.this_item.search(plain) and signs.orders.search(plain))
    if signs.sorts_itself.search(plain):
        return False
    return bool(signs.orders.search(plain) or signs.this_item.search(plain))


def speaks_of_sorting(piece: str) -> bool:
    plain, signs = _folded(piece), _signs()
    return any(one.search(plain) for one in (signs.sorting, signs.kinds, signs.orders, signs.this_item))


def is_odd(piece: str) -> bool:
    """Too little to suspect anybody, and too much to be kept of somebody who is suspected."""
    plain, signs = _folded(piece), _signs()
    if signs.sorting.search(plain) or signs.odd.search(plain) or QUOTED_KEY.search(plain):
        return True
    is_short = len(plain.split()) < MIN_WORDS and plain.isascii()
    return is_short or bool(signs.kinds.search(plain) and signs.orders.search(plain))


def is_list(piece: str) -> bool:
    """Many parts of a word or two each, or the same words again and again."""
    words = _folded(piece).split()
    parts = [part for part in _PARTS.split(piece) if part.strip()]
    is_enumeration = len(parts) >= LONG_LIST and len(words) <= WORDS_A_PART * len(parts)
    return is_enumeration or (len(words) >= MIN_WORDS and 2 * len(set(words)) < len(words))


def _has_blob(piece: str) -> bool:
    """A run of letters and digits that no word and no address is."""
    return any(
        any(char.isdigit() for char in blob)
        and blob.count("/") + blob.count("_") + blob.count("-") < len(blob) / 12
        for blob in _BLOB.findall(piece)
    )


def _folded(text: str) -> str:
    """Lower case, without accents, identifiers as words."""
    text = _CAMEL.sub(" ", text).replace("_", " ")
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", "".join(char for char in plain if not "\u0300" <= char <= "\u036f"))


@cache
def _signs() -> _Signs:
    patterns = tomllib.loads((files("toolscript.tools.classify") / "steering.toml").read_text("utf-8"))
    return _Signs(
        **{name: re.compile("|".join(f"(?:{one})" for one in given)) for name, given in patterns.items()}
    )


NO_NAMES = SkillNames()


def described(item: Item, skills: SkillNames = NO_NAMES) -> tuple[Item, bool]:
    """The item with what describes it, cut to what a classifier needs, and whether anything had to be left out."""
    own = _Own.of(item, skills)
    description, one = _cleaned(item.description, own)
    server_description, two = _cleaned(item.server_description, own)
    name, three = _cleaned_name(item.name)
    server, four = _cleaned_name(item.server)
    schema, five = _cleaned_schema(item.input_schema)
    read = replace(
        item,
        name=name,
        server=server,
        description=description[:MAX_DESCRIBED],
        server_description=server_description[:MAX_DESCRIBED],
        input_schema=schema,
    )
    return read, one or two or three or four or five


@dataclass(frozen=True)
class _Own:
    """What an item is called by, its parameters among it: what describes it speaks of that."""

    stems: frozenset[int]
    words: frozenset[str]
    skills: SkillNames

    @staticmethod
    def of(item: Item, skills: SkillNames) -> "_Own":
        called = " ".join([item.name, item.server, *_parameters(item.input_schema)])
        return _Own(_stems(called), frozenset(words_of(called)), skills)

    def is_in(self, text: str) -> bool:
        return not self.stems.isdisjoint(_stems(text))

    def names_a_skill(self, text: str) -> bool:
        if self.skills.are_in(text, self.words):
            return True
        return self.skills.may_be_in(text) and speaks_of_sorting(text)


def _cleaned(text: str, own: _Own) -> tuple[str, bool]:
    text = readable(text[:MAX_READ])
    seen = _SECRET.sub("", _INVISIBLE.sub("", text))
    spans = pieces_of(seen)
    pieces = [seen[start:end] for start, end in spans]
    steering = _steering(seen, pieces, own)
    left_out = [one or other for one, other in zip(steering, _empty_words(pieces), strict=True)]
    if not any(left_out):
        return (seen, True) if _SECRET.search(text) else (text, False)
    if any(steering):
        left_out = [
            out or (is_odd(piece) and not own.is_in(piece)) for out, piece in zip(left_out, pieces, strict=True)
        ]
    runs = [seen[start:end].strip() for start, end in runs_of(spans, left_out)]
    return "\n".join(_of_the_item(runs, own) if any(steering) else runs), True


def _steering(text: str, pieces: Sequence[str], own: _Own) -> list[bool]:
    names_skills = own.names_a_skill(text)
    return [steers(piece) or (names_skills and own.names_a_skill(piece)) for piece in pieces]


def _empty_words(pieces: Sequence[str]) -> list[bool]:
    """Lists and repetitions: no cause for suspicion, and no description."""
    times = Counter(pieces)
    return [is_list(piece) or (times[piece] >= TOO_OFTEN and len(piece.split()) > 1) for piece in pieces]


def _of_the_item(runs: Sequence[str], own: _Own) -> list[str]:
    """What stands beside steering and shares no word with the item's name and parameters may be part of it."""
    about = [run for run in runs if own.is_in(run)]
    long_enough = [run for run in runs if len(words_of(run)) >= MIN_WORDS]
    return about or long_enough[:1]


def _cleaned_name(name: str) -> tuple[str, bool]:
    return ("", True) if _is_steering_name(name) else (name[:MAX_NAME], False)


def _is_steering_name(name: str) -> bool:
    """A name of a word or two orders nothing."""
    spoken = split_identifier(name[:MAX_READ])
    return len(spoken.split()) >= MIN_WORDS and (steers(spoken) or is_list(spoken))


def _cleaned_schema(schema: JsonObject | None) -> tuple[JsonObject | None, bool]:
    hostile = {name for name in _parameters(schema) if _is_steering_name(name)}
    properties = (schema or {}).get("properties")
    if not hostile or not isinstance(properties, Mapping):
        return schema, False
    kept = {name: value for name, value in properties.items() if name not in hostile}
    return {**(schema or {}), "properties": kept}, True


def _parameters(schema: JsonObject | None) -> list[str]:
    """As many as an item is known by."""
    properties = (schema or {}).get("properties")
    return [str(name) for name in list(properties)[:MAX_PARAMETERS]] if isinstance(properties, Mapping) else []


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))
