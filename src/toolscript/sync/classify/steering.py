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

from toolscript.model.items import Item, JsonObject
from toolscript.model.text import readable
from toolscript.model.words import split_identifier, terms_of_word, without_stop_words, words_of
from toolscript.sync.classify.skill_names import SkillNames

MAX_READ = 6_000
MAX_DESCRIBED, MAX_NAME = 1_000, 200
FEWEST_WORDS = 3
# A list of words describes nothing.
LONG_LIST, WORDS_A_PART = 9, 2.5
TOO_OFTEN = 3

NO_NAMES = SkillNames()

Span = tuple[int, int]

# Letters nobody sees: what is written with tags is meant for a machine alone.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]")
_SECRET = re.compile("[\U000e0000-\U000e007f]+")
_BLOCK = re.compile(
    r"```.*?(?:```|\Z)|<!--.*?(?:-->|\Z)"
    r"|<(system|assistant|user|instructions?|admin|developer|human|classification)\b[^>]{0,80}>.*?(?:</\1\s*>|\Z)"
    r"|\[inst\].*?(?:\[/inst\]|\Z)|<<sys>>.*?(?:<</sys>>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_END = re.compile(
    r"[.!?]+[\"')\]]*\s+|[。！？；]+\s*|;\s+|\s+(?:[-–—|•·*#~]{1,8}|//)\s+|\s*\n\s*|\s+(?=[(\[])|(?<=[)\]])\s+"
)
_BLOB = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{36,}={0,2}|\b[0-9a-fA-F]{32,}\b")
_QUOTED_KEY = re.compile(r"[\"'`][\w -]{1,40}[\"'`]\s*:")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile(r"[,/|;、，]|\n|\s-\s")


@dataclass(frozen=True)
class _Signs:
    sorting: re.Pattern[str]
    kinds: re.Pattern[str]
    orders: re.Pattern[str]
    this_item: re.Pattern[str]
    sorts_itself: re.Pattern[str]
    plain: re.Pattern[str]
    odd: re.Pattern[str]


def described(item: Item, skills: SkillNames = NO_NAMES) -> tuple[Item, bool]:
    """The item with what describes it, cut to what a classifier needs, and whether anything tried to steer."""
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
        return self.skills.may_be_in(text) and _speaks_of_sorting(text)


def _cleaned(text: str, own: _Own) -> tuple[str, bool]:
    text = readable(text[:MAX_READ])
    seen = _SECRET.sub("", _INVISIBLE.sub("", text))
    spans = list(_pieces(seen))
    pieces = [seen[start:end] for start, end in spans]
    steering = _steering(seen, pieces, own)
    lists = [_is_list(piece) for piece in pieces]
    left_out = [one or other for one, other in zip(steering, lists, strict=True)]
    if not any(left_out):
        return (seen, True) if _SECRET.search(text) else (text, False)
    if any(steering):
        left_out = [out or _is_odd(piece, own) for out, piece in zip(left_out, pieces, strict=True)]
    runs = [seen[start:end].strip() for start, end in _runs(spans, left_out)]
    return "\n".join(_of_the_item(runs, own) if any(steering) else runs), True


def _steering(text: str, pieces: Sequence[str], own: _Own) -> list[bool]:
    names_skills, times = own.names_a_skill(text), Counter(pieces)
    return [
        _steers(piece) or times[piece] >= TOO_OFTEN or (names_skills and own.names_a_skill(piece))
        for piece in pieces
    ]


def _of_the_item(runs: Sequence[str], own: _Own) -> list[str]:
    """What stands beside steering and shares no word with the item's name and parameters may be part of it."""
    about = [run for run in runs if own.is_in(run)]
    long_enough = [run for run in runs if len(words_of(run)) >= FEWEST_WORDS]
    return about or long_enough[:1]


def _steers(piece: str) -> bool:
    plain = _folded(piece)
    signs = _signs()
    if signs.plain.search(plain) or _has_blob(piece):
        return True
    if not signs.sorting.search(plain):
        return bool(signs.kinds.search(plain) and signs.this_item.search(plain) and signs.orders.search(plain))
    if signs.sorts_itself.search(plain):
        return False
    return bool(signs.orders.search(plain) or signs.this_item.search(plain))


def _speaks_of_sorting(piece: str) -> bool:
    plain, signs = _folded(piece), _signs()
    return any(one.search(plain) for one in (signs.sorting, signs.kinds, signs.orders, signs.this_item))


def _is_odd(piece: str, own: _Own) -> bool:
    """Kept of another item, but not of one that tried to steer: it says nothing of what the item's name says."""
    if own.is_in(piece):
        return False
    plain, signs = _folded(piece), _signs()
    if signs.sorting.search(plain) or signs.odd.search(plain) or _QUOTED_KEY.search(plain):
        return True
    is_short = len(plain.split()) < FEWEST_WORDS and plain.isascii()
    return is_short or bool(signs.kinds.search(plain) and signs.orders.search(plain))


def _is_list(piece: str) -> bool:
    """Many parts of a word or two each, or the same words again and again."""
    words = _folded(piece).split()
    parts = [part for part in _PARTS.split(piece) if part.strip()]
    is_enumeration = len(parts) >= LONG_LIST and len(words) <= WORDS_A_PART * len(parts)
    return is_enumeration or (len(words) >= FEWEST_WORDS and 2 * len(set(words)) < len(words))


def _has_blob(piece: str) -> bool:
    """A run of letters and digits that no word and no address is."""
    return any(
        any(char.isdigit() for char in blob)
        and blob.count("/") + blob.count("_") + blob.count("-") < len(blob) / 12
        for blob in _BLOB.findall(piece)
    )


def _pieces(text: str) -> Iterator[Span]:
    """Sentences, lines and what stands in brackets; a block of code, of markup or of JSON is one piece."""
    at = 0
    for start, end in _blocks(text):
        yield from _sentences(text, at, start)
        yield start, end
        at = end
    yield from _sentences(text, at, len(text))


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    for separator in _END.finditer(text, start, end):
        if separator.end() > start:
            yield start, separator.end()
            start = separator.end()
    if start < end:
        yield start, end


def _blocks(text: str) -> list[Span]:
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
    for match in re.finditer(r"[{}\[\]]", text):
        if match[0] in "{[":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            if not opened and _QUOTED_KEY.search(text, start, match.end()):
                found.append((start, match.end()))
    return found


def _runs(spans: Sequence[Span], left_out: Sequence[bool]) -> Iterator[Span]:
    """Neighbours that are kept, as one span each."""
    begun: int | None = None
    for (start, _), is_out in zip(spans, left_out, strict=True):
        if is_out and begun is not None:
            yield begun, start
        begun = None if is_out else start if begun is None else begun
    if begun is not None:
        yield begun, spans[-1][1]


def _cleaned_name(name: str) -> tuple[str, bool]:
    return ("", True) if _is_steering_name(name) else (name[:MAX_NAME], False)


def _is_steering_name(name: str) -> bool:
    """A name of a word or two orders nothing."""
    spoken = split_identifier(name[:MAX_READ])
    return len(spoken.split()) >= FEWEST_WORDS and (_steers(spoken) or _is_list(spoken))


def _cleaned_schema(schema: JsonObject | None) -> tuple[JsonObject | None, bool]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return schema, False
    kept = {name: value for name, value in properties.items() if not _is_steering_name(str(name))}
    return ({**(schema or {}), "properties": kept}, True) if len(kept) < len(properties) else (schema, False)


def _parameters(schema: JsonObject | None) -> list[str]:
    properties = (schema or {}).get("properties")
    return [str(name)[:MAX_NAME] for name in properties] if isinstance(properties, Mapping) else []


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))


def _folded(text: str) -> str:
    """Lower case, without accents, identifiers as words."""
    text = _CAMEL.sub(" ", text).replace("_", " ")
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", "".join(char for char in plain if not "\u0300" <= char <= "\u036f"))


@cache
def _signs() -> _Signs:
    patterns = tomllib.loads((files("toolscript.sync.classify") / "steering.toml").read_text("utf-8"))
    return _Signs(
        **{name: re.compile("|".join(f"(?:{one})" for one in given)) for name, given in patterns.items()}
    )
