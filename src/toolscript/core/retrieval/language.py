"""The language of a request, if not English: a script by its letters, a language in Latin letters by trigrams.

Most requests are English, and a wrong claim that one is not helps nobody: short, mixed and doubtful texts count as
English. `scripts/build-languages` makes the table of trigrams.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.request import is_english, without_literals
from toolscript.core.retrieval.terms import STOP_WORDS

Evidence = NDArray[np.int32]

# The beginning of a request tells its language.
MAX_LETTERS = 400
# Evidence in tenths of a natural logarithm: so much, from so many words that are not English.
MIN_EVIDENCE, MIN_WORDS = 60, 2
# To be certain: so many words with at least so much evidence each; fewer among letters that English does not have.
PROVING_WORDS, PROVING_ACCENTED, PROVES = 3, 2, 20
# An English word may be one of another language, too, but does not prove it; and one that looks English, such as
# `Repository` in a German request, proves little, unless it is a stop word.
MAX_OF_ENGLISH, MAX_AGAINST = 40, -60

# The first letter of each script, its code of a language and its name; a letter of such a script says as much as
# so many Latin ones.
_LATIN = ("", "", 1)
_OTHER = ("", "a script other than Latin", 1)
_SCRIPTS = {
    0x0000: _LATIN,
    0x0370: ("el", "Greek", 1),
    0x0400: ("ru", "a language in Cyrillic letters", 1),
    0x0530: ("hy", "Armenian", 1),
    0x0590: ("he", "Hebrew", 1),
    0x0600: ("ar", "a language in Arabic letters", 1),
    0x0700: _OTHER,
    0x0900: ("hi", "a language in Devanagari letters", 1),
    0x0980: _OTHER,
    0x0E00: ("th", "Thai", 1),
    0x0E80: _OTHER,
    0x10A0: ("ka", "Georgian", 1),
    0x1100: ("ko", "Korean", 2),
    0x1200: _OTHER,
    0x1D00: _LATIN,
    0x1F00: ("el", "Greek", 1),
    0x2000: _LATIN,
    0x2C00: _OTHER,
    0x3040: ("ja", "Japanese", 3),
    0x3100: _OTHER,
    0x3400: ("zh", "Chinese", 3),
    0xA000: _OTHER,
    0xAC00: ("ko", "Korean", 2),
    0xD800: _OTHER,
    0xF900: ("zh", "Chinese", 3),
    0xFB00: _LATIN,
    0xFB1D: ("he", "Hebrew", 1),
    0xFB50: ("ar", "a language in Arabic letters", 1),
    0xFE70: ("ar", "a language in Arabic letters", 1),
    0xFF00: _LATIN,
    0xFF66: ("ja", "Japanese", 3),
    0xFFA0: ("ko", "Korean", 2),
    0x10000: _OTHER,
    0x1D400: _LATIN,
    0x1D800: _OTHER,
    0x20000: ("zh", "Chinese", 3),
}
# Words that hold sentences together, but for those that are English, too. Two of them, or one among words that are
# not English, tell the language of a request that is too short for anything else.
_FUNCTION_WORDS = {
    "de": "der das und ein eine einen einem einer ist nicht mit von zu auf im für dem des wie nach aus bei alle",
    "es": "el los las un una unos del de en y con para por que como al todos todas",
    "fr": "le les un une des du de et dans sur pour avec que au aux tous toutes mon ma",
    "it": "il lo gli un una uno di del della nel con che tutti tutte",
    "nl": "het een en van met voor naar alle",
    "pt": "os um uma de do da em com para por que todos todas",
}
_STARTS = [*_SCRIPTS]
_NAMES = {
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "sv": "Swedish",
    "tr": "Turkish",
    "vi": "Vietnamese",
}
_NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u036f\u1d00-\u1eff\u2000-\u2bff\ufb00-\ufb1c\uff00-\uff65]")
# A word in Latin letters; not an identifier, a file, an abbreviation or a part of one.
_WORD = re.compile(r"(?<![\w.@/\\#$-])[^\W\d_]?[^\W\d_A-Z]+(?:['’-][^\W\d_A-Z]+)*(?![\w@/\\=-]|\.\w)")
_JOINTS = re.compile(r"['’-]")
# Other literals have no words, or words that do not count.
_OPENS_LITERAL = re.compile(r"[\"“`<{\[]|(?<!\w)'")


@dataclass(frozen=True)
class Language:
    """`code` as in ISO 639-1, empty if unknown; of languages that share a script, that of the most common one.

    Not certain: a few words, which may be English jargon.
    """

    code: str
    name: str
    is_certain: bool = True


@lru_cache(maxsize=512)
def foreign_language(text: str) -> Language | None:
    """Return the language of a request that is not English; names, literals and code do not count."""
    plain = text[:MAX_LETTERS]
    if _OPENS_LITERAL.search(plain):
        plain = without_literals(plain)
    words = _WORD.findall(plain)
    by_script = None if plain.isascii() else _by_script(plain, words)
    return by_script or _by_function_words(words) or _by_trigrams(words)


def unknown_language_hint(language: Language, model: str, remedy: str = "") -> str:
    """Say that a model does not know the language of a request, and what to do."""
    name = language.name if language.is_certain else "another language"
    return f"the request seems to be in {name}, and {model} knows English only: say it in English{remedy}"


def _by_script(text: str, words: Iterable[str]) -> Language | None:
    """Return the script of most letters; Latin letters count in words only."""
    counts = Counter(map(_script_of, _NOT_LATIN.findall(text)))
    if not counts:
        return None
    weights = {script: count * script[2] for script, count in counts.items()}
    latin = sum(len(word) for word in words if word.isascii())
    if sum(weights.values()) <= latin:
        return None
    # Japanese is written with Chinese characters, too; Chinese without kana.
    by_name = {script[1]: script for script in weights}
    code, name, _ = by_name.get("Japanese") or max(weights, key=weights.__getitem__)
    return Language(code, name)


@lru_cache(maxsize=4_096)
def _script_of(letter: str) -> tuple[str, str, int]:
    return _SCRIPTS[_STARTS[bisect_right(_STARTS, ord(letter)) - 1]]


def _by_function_words(words: Sequence[str]) -> Language | None:
    """Return the language with the most function words, the likeliest by trigrams; none beside English ones."""
    lower = [word.lower() for word in words]
    if any(word in STOP_WORDS for word in lower):
        return None
    counts = {code: sum(word in listed for word in lower) for code, listed in _function_words().items()}
    most = max(counts.values())
    foreign = sum(not is_english(word) for word in lower)
    if most < 1 or (most < 2 and foreign < MIN_WORDS):
        return None
    evidence = np.add.reduce([_read(word).evidence for word in lower])
    likeliest = max(
        (code for code, count in counts.items() if count == most),
        key=lambda code: evidence[_table().languages.index(code)],
    )
    return Language(likeliest, _NAMES[likeliest])


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {code: frozenset(listed.split()) - STOP_WORDS for code, listed in _FUNCTION_WORDS.items()}


def _by_trigrams(words: Sequence[str]) -> Language | None:
    parts = _JOINTS.sub(" ", " ".join(words)).split()
    read = [_read(part.lower()) for part in parts]
    if sum(not word.is_english for word in read) < MIN_WORDS:
        return None
    proof = np.array([word.proof for word in read])
    total = proof.sum(axis=0)
    if total.max() < MIN_EVIDENCE:
        return None
    # An English request may have a name such as Björk.
    may_prove = [part.lower() for part in parts if part.isascii() or part.islower() or part is parts[0]]
    proving = sum(_read(part).proof[total.argmax()] >= PROVES for part in may_prove)
    is_certain = bool(proving >= (PROVING_WORDS if "".join(may_prove).isascii() else PROVING_ACCENTED))
    code = _table().languages[int(np.add.reduce([word.evidence for word in read]).argmax())]
    return Language(code, _NAMES[code], is_certain)


class _Word(NamedTuple):
    """`evidence`: how much more likely it is in each language than in English; `proof`: the part that counts."""

    is_english: bool
    evidence: Evidence
    proof: Evidence


@lru_cache(maxsize=8_192)
def _read(word: str) -> _Word:
    table, spaced = _table(), f" {word} "
    rows = [
        table.rows[trigram] for start in range(len(word)) if (trigram := spaced[start : start + 3]) in table.rows
    ]
    evidence = np.asarray(table.evidence[rows].sum(axis=0, dtype=np.int32))
    if word in STOP_WORDS:
        return _Word(True, evidence, np.minimum(evidence, MAX_OF_ENGLISH))
    known = is_english(word)
    return _Word(known, evidence, np.clip(evidence, MAX_AGAINST, MAX_OF_ENGLISH if known else None))


class _Table(NamedTuple):
    """A row per trigram, a column per language."""

    languages: list[str]
    rows: dict[str, int]
    evidence: NDArray[np.int8]


@cache
def _table() -> _Table:
    with (files(__package__) / "languages.npz").open("rb") as file, np.load(file) as arrays:
        rows = {trigram: row for row, trigram in enumerate(arrays["trigrams"].tolist())}
        return _Table(arrays["languages"].tolist(), rows, arrays["evidence"])
