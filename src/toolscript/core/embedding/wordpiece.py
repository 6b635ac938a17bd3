"""The tokenizer of the built-in model: BERT's WordPiece without case, in Python alone.

It gives the tokens that the `tokenizers` library gives for the same file. The library and what it installs are
larger than all of the table; a query has few words, and the words of tools repeat, so each is taken apart once.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PREFIX = "##"
UNKNOWN = "[UNK]"
# The library takes a longer word for an unknown one.
MAX_WORD = 100
# Words whose tokens are kept. A catalog of 2,375 tools has some 7,000.
MAX_CACHED = 50_000
IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
_ASCII_WORD = re.compile(r"[a-z0-9]+|[^a-z0-9 ]")
# Control characters disappear, and do not part words.
_ASCII_CONTROL = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"} | dict.fromkeys(
    map(ord, "\t\n\r"), " "
)


class WordPiece:
    """Splits texts into tokens, by the vocabulary in a `tokenizer.json`."""

    def __init__(self, file: Path) -> None:
        described: dict[str, Any] = json.loads(file.read_text("utf-8"))
        self._vocabulary: dict[str, int] = described["model"]["vocab"]
        self._unknown: int = self._vocabulary[UNKNOWN]
        special = [str(token["content"]) for token in described["added_tokens"]]
        self._special = re.compile("(" + "|".join(map(re.escape, special)) + ")")
        self._cached: dict[str, tuple[int, ...]] = {}

    @property
    def unknown(self) -> int:
        return self._unknown

    def tokens(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` tokens of the text."""
        tokens: list[int] = []
        for word in self._words(text):
            tokens += self._tokens_of(word)
            if len(tokens) >= limit:
                break
        return tokens[:limit]

    def _words(self, text: str) -> Iterator[str]:
        """Yield words and marks. Special tokens stand for themselves, with their brackets and case."""
        for number, part in enumerate(self._special.split(text)):
            if number % 2:
                yield part
            elif part.isascii():
                yield from _ASCII_WORD.findall(part.translate(_ASCII_CONTROL).lower())
            else:
                yield from _words_of(part)

    def _tokens_of(self, word: str) -> tuple[int, ...]:
        if (known := self._cached.get(word)) is not None:
            return known
        if len(self._cached) >= MAX_CACHED:
            self._cached.clear()
        tokens = self._cached[word] = self._split(word)
        return tokens

    def _split(self, word: str) -> tuple[int, ...]:
        """Take the longest known beginning, again and again. A word with an unknown part is unknown."""
        if word in self._vocabulary:
            return (self._vocabulary[word],)
        if len(word) > MAX_WORD:
            return (self._unknown,)
        tokens: list[int] = []
        start = 0
        while start < len(word):
            prefix = PREFIX if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return (self._unknown,)
            tokens.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return tuple(tokens)


def _words_of(text: str) -> Iterator[str]:
    """Yield the words of any text: without accents, and with every mark and ideograph as a word of its own."""
    cleaned = "".join(map(_cleaned, text))
    letters = (char for char in unicodedata.normalize("NFD", cleaned) if unicodedata.category(char) != "Mn")
    for chunk in "".join(letters).lower().split():
        word = ""
        for char in chunk:
            if not _stands_alone(char):
                word += char
                continue
            if word:
                yield word
            yield char
            word = ""
        if word:
            yield word


def _cleaned(char: str) -> str:
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if char.isspace():
        return " "
    return f" {char} " if _is_ideograph(ord(char)) else char


def _is_ideograph(code: int) -> bool:
    return code >= 0x3400 and any(first <= code <= last for first, last in IDEOGRAPHS)


def _stands_alone(char: str) -> bool:
    if char.isascii():
        return not char.isalnum()
    return unicodedata.category(char)[0] == "P"
