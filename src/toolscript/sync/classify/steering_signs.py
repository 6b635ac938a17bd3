"""What gives a piece of text away that talks to whoever sorts items, and what is no sentence at all."""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from toolscript.sync.classify.text_pieces import QUOTED_KEY

# A list of words describes nothing.
LONG_LIST, WORDS_A_PART = 9, 2.5
FEWEST_WORDS = 3

_BLOB = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{36,}={0,2}|\b[0-9a-fA-F]{32,}\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PARTS = re.compile(r"[,/|;、，]|\n|\s-\s")


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
    is_short = len(plain.split()) < FEWEST_WORDS and plain.isascii()
    return is_short or bool(signs.kinds.search(plain) and signs.orders.search(plain))


def is_list(piece: str) -> bool:
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
