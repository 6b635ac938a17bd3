"""Removes prompt injection from item text: sentences that address the classifier instead of describing the item.

The rules cannot be certain, and need not be: a false positive costs one sentence, and the name, the server and the
other sentences remain.
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

# Signs that do not occur in ordinary speech mark the name of a skill: "Crypto & Blockchain".
SIGNS = re.compile(r"[&+/|,:]")
# A name with fewer words only matches with its signs.
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

# A list of words is no description.
LONG_LIST, WORDS_A_PART = 9, 2.5
MIN_WORDS = 3

_BLOB = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{36,}={0,2}|\b[0-9a-fA-F]{32,}\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile(r"[,/|;、，]|\n|\s-\s")

MAX_READ = 6_000
MAX_DESCRIBED, MAX_NAME = 1_000, 200
# A description does not repeat a sentence this often.
TOO_OFTEN = 3

# Invisible characters. Text in those of the second kind is meant for a machine only.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]")
_SECRET = re.compile("[\U000e0000-\U000e007f]+")


class SkillNames:
    """Skill names, indexed by their first word, so that a text is compared with few of them."""

    def __init__(self, skills: Sequence[Skill] = ()) -> None:
        self._certain: dict[str, set[tuple[Words, str]]] = {}
        self._phrases: dict[str, set[str]] = {}
        # Ids of several words, with these words. No ordinary text has one, not even glued to other letters.
        self._ids: dict[str, Words] = {}
        for skill in skills:
            words = tuple(words_of(skill.name))
            if len(words) > 1 and SIGNS.search(skill.name):
                literally = "" if len(words) >= ENOUGH_WORDS else skill.name.casefold()
                self._certain.setdefault(words[0], set()).add((words, literally))
            elif len(words) > 1 and skill.name != skill.name.lower():
                self._phrases.setdefault(words[0], set()).add(skill.name)
            if "_" in skill.id:
                # Tokenizing an id yields one word.
                word = skill.id.replace("_", "")
                self._certain.setdefault(word, set()).add(((word,), ""))
                self._ids[skill.id] = (*skill.id.split("_"),)

    def are_in(self, text: str, but: frozenset[str] = frozenset()) -> bool:
        """Return whether a skill is named. `but` are the item's own words: a tool may be named like a skill."""
        words, letters = tuple(words_of(text)), text.casefold()
        if "_" in letters and any(
            skill_id in letters and not but.issuperset(parts) for skill_id, parts in self._ids.items()
        ):
            return True
        return any(
            words[index : index + len(name)] == name and literally in letters and not but.issuperset(name)
            for index, word in enumerate(words)
            for name, literally in self._certain.get(word, ())
        )

    def may_be_in(self, text: str) -> bool:
        """Return whether the text contains a name of plain words, with its capitals: it may refer to the skill."""
        return any(phrase in text for word in set(words_of(text)) for phrase in self._phrases.get(word, ()))


def sentences_of(text: str) -> list[Span]:
    """Split the text into sentences without gaps. A block of code, markup or JSON is one span."""
    spans: list[Span] = []
    position = 0
    for start, end in _blocks(text):
        spans += [*_sentences(text, position, start), (start, end)]
        position = end
    return [*spans, *_sentences(text, position, len(text))]


def runs_of(spans: Sequence[Span], left_out: Sequence[bool]) -> Iterator[Span]:
    """Join neighbouring spans that are kept."""
    run_start: int | None = None
    for (start, _), is_out in zip(spans, left_out, strict=True):
        if is_out and run_start is not None:
            yield run_start, start
        run_start = None if is_out else start if run_start is None else run_start
    if run_start is not None:
        yield run_start, spans[-1][1]


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    for separator in _END.finditer(text, start, end):
        if separator.end() > start:
            yield start, separator.end()
            start = separator.end()
    if start < end:
        yield start, end


def _blocks(text: str) -> list[Span]:
    """Return the outermost blocks, in order."""
    spans = [match.span() for match in _BLOCK.finditer(text)] + _objects(text)
    kept: list[Span] = []
    for span in sorted(spans, key=lambda bounds: (bounds[0], -bounds[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _objects(text: str) -> list[Span]:
    """Return the outermost pairs of braces or square brackets with a quoted key in them."""
    opened: list[int] = []
    objects: list[Span] = []
    for match in _BRACE.finditer(text):
        if match[0] in "{[":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            if not opened and QUOTED_KEY.search(text, start, match.end()):
                objects.append((start, match.end()))
    return objects


@dataclass(frozen=True)
class _Signs:
    """The patterns of steering.toml."""

    sorting: re.Pattern[str]
    kinds: re.Pattern[str]
    orders: re.Pattern[str]
    this_item: re.Pattern[str]
    sorts_itself: re.Pattern[str]
    plain: re.Pattern[str]
    odd: re.Pattern[str]


def steers(sentence: str) -> bool:
    plain, signs = _folded(sentence), _signs()
    if signs.plain.search(plain) or _has_blob(sentence):
        return True
    if not signs.sorting.search(plain):
        return bool(signs.kinds.search(plain) and signs.this_item.search(plain) and signs.orders.search(plain))
    if signs.sorts_itself.search(plain):
        return False
    return bool(signs.orders.search(plain) or signs.this_item.search(plain))


def gives_orders(text: str) -> bool:
    """Return whether a text tells its reader what to do, whatever it is about."""
    return bool(_signs().orders.search(_folded(text)))


def speaks_of_sorting(sentence: str) -> bool:
    plain, signs = _folded(sentence), _signs()
    return any(pattern.search(plain) for pattern in (signs.sorting, signs.kinds, signs.orders, signs.this_item))


def is_odd(sentence: str) -> bool:
    """Return whether a sentence is suspicious: left out beside a steering sentence, but no steering by itself."""
    plain, signs = _folded(sentence), _signs()
    if signs.sorting.search(plain) or signs.odd.search(plain) or QUOTED_KEY.search(plain):
        return True
    is_short = len(plain.split()) < MIN_WORDS and plain.isascii()
    return is_short or bool(signs.kinds.search(plain) and signs.orders.search(plain))


def is_list(sentence: str) -> bool:
    """Return whether the text is a list: many parts of a word or two each, or repeated words."""
    words = _folded(sentence).split()
    parts = [part for part in _PARTS.split(sentence) if part.strip()]
    is_enumeration = len(parts) >= LONG_LIST and len(words) <= WORDS_A_PART * len(parts)
    return is_enumeration or (len(words) >= MIN_WORDS and 2 * len(set(words)) < len(words))


def _has_blob(sentence: str) -> bool:
    """Return whether the text contains encoded data: a run of letters and digits that is no word and no URL."""
    return any(
        any(char.isdigit() for char in blob)
        and blob.count("/") + blob.count("_") + blob.count("-") < len(blob) / 12
        for blob in _BLOB.findall(sentence)
    )


def _folded(text: str) -> str:
    """Return the text in lower case, without accents, with identifiers split into words."""
    text = _CAMEL.sub(" ", text).replace("_", " ")
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", "".join(char for char in plain if not "\u0300" <= char <= "\u036f"))


@cache
def _signs() -> _Signs:
    patterns = tomllib.loads((files("toolscript.tools.classify") / "steering.toml").read_text("utf-8"))
    return _Signs(
        **{name: re.compile("|".join(f"(?:{regex})" for regex in regexes)) for name, regexes in patterns.items()}
    )


NO_NAMES = SkillNames()


def described(item: Item, skills: SkillNames = NO_NAMES) -> tuple[Item, bool]:
    """Return the item with its descriptive text, truncated for a classifier, and whether any text was left out."""
    own = _Own.of(item, skills)
    description, in_description = _cleaned(item.description, own)
    server_description, in_server_description = _cleaned(item.server_description, own)
    name, in_name = _cleaned_name(item.name)
    server, in_server = _cleaned_name(item.server)
    schema, in_schema = _cleaned_schema(item.input_schema)
    cleaned = replace(
        item,
        name=name,
        server=server,
        description=description[:MAX_DESCRIBED],
        server_description=server_description[:MAX_DESCRIBED],
        input_schema=schema,
    )
    return cleaned, in_description or in_server_description or in_name or in_server or in_schema


@dataclass(frozen=True)
class _Own:
    """The words of an item's name, server and parameters: a description shares some of them."""

    stems: frozenset[int]
    words: frozenset[str]
    skills: SkillNames

    @staticmethod
    def of(item: Item, skills: SkillNames) -> "_Own":
        names = " ".join([item.name, item.server, *_parameters(item.input_schema)])
        return _Own(_stems(names), frozenset(words_of(names)), skills)

    def is_in(self, text: str) -> bool:
        return not self.stems.isdisjoint(_stems(text))

    def names_a_skill(self, text: str) -> bool:
        if self.skills.are_in(text, self.words):
            return True
        return self.skills.may_be_in(text) and speaks_of_sorting(text)


def _cleaned(text: str, own: _Own) -> tuple[str, bool]:
    text = readable(text[:MAX_READ])
    visible = _SECRET.sub("", _INVISIBLE.sub("", text))
    spans = sentences_of(visible)
    sentences = [visible[start:end] for start, end in spans]
    steering = _steering(visible, sentences, own)
    left_out = [
        is_steering or is_empty for is_steering, is_empty in zip(steering, _empty_words(sentences), strict=True)
    ]
    if not any(left_out):
        return (visible, True) if _SECRET.search(text) else (text, False)
    if any(steering):
        left_out = [
            out or (is_odd(sentence) and not own.is_in(sentence))
            for out, sentence in zip(left_out, sentences, strict=True)
        ]
    runs = [visible[start:end].strip() for start, end in runs_of(spans, left_out)]
    return "\n".join(_of_the_item(runs, own) if any(steering) else runs), True


def _steering(text: str, sentences: Sequence[str], own: _Own) -> list[bool]:
    names_skills = own.names_a_skill(text)
    return [steers(sentence) or (names_skills and own.names_a_skill(sentence)) for sentence in sentences]


def _empty_words(sentences: Sequence[str]) -> list[bool]:
    """Mark lists and repetitions: not suspicious, but no description."""
    times = Counter(sentences)
    return [
        is_list(sentence) or (times[sentence] >= TOO_OFTEN and len(sentence.split()) > 1) for sentence in sentences
    ]


def _of_the_item(runs: Sequence[str], own: _Own) -> list[str]:
    """Keep text that shares a word with the item's name or parameters: other text may belong to the steering."""
    about = [run for run in runs if own.is_in(run)]
    long_enough = [run for run in runs if len(words_of(run)) >= MIN_WORDS]
    return about or long_enough[:1]


def _cleaned_name(name: str) -> tuple[str, bool]:
    return ("", True) if _is_steering_name(name) else (name[:MAX_NAME], False)


def _is_steering_name(name: str) -> bool:
    """Return whether a name steers. A name of one or two words is no instruction."""
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
    """Return the names of the parameters that are part of an item's text."""
    properties = (schema or {}).get("properties")
    return [str(name) for name in list(properties)[:MAX_PARAMETERS]] if isinstance(properties, Mapping) else []


def _stems(text: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in without_stop_words(words_of(text)))
