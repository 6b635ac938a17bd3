"""The tokenizer of the built-in model gives the tokens of the library that made its table."""

import random
import sys
import unicodedata
from collections.abc import Callable

import pytest
from tokenizers import Tokenizer

from tests.repo.sources import ROOT
from toolscript.core.embedding.static_table import FOLDER, MAX_TOKENS, TOKENIZER_FILE
from toolscript.core.embedding.wordpiece import MAX_CACHED, WordPiece

FILE = FOLDER / TOKENIZER_FILE
PARTS = (
    *(
        "read",
        "a file",
        " ",
        "_",
        "-",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "Ǆ",
        "中文",
        "한국",
        "ก็",
        "\u200b",
        "\t",
        "\x00",
        "…",
    ),
    *(
        "[MASK]",
        "[UNK]",
        "[mask]",
        "x" * 99,
        "x" * 100,
        "x" * 101,
        "https://a.example/x?y=1",
        "naïve",
        "\U0001f600",
        "«",
    ),
)


@pytest.fixture(scope="module")
def ours() -> WordPiece:
    return WordPiece(FILE)


@pytest.fixture(scope="module")
def theirs() -> Callable[[str], list[int]]:
    tokenizer = Tokenizer.from_file(str(FILE))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def test_texts_of_tools_have_the_tokens_of_the_library(
    ours: WordPiece, theirs: Callable[[str], list[int]]
) -> None:
    lines = (ROOT / "tests" / "golden" / "tools.jsonl").read_text("utf-8").splitlines()
    assert [ours.tokens(line, MAX_TOKENS) for line in lines] == [theirs(line) for line in lines]


def test_mixtures_of_scripts_marks_and_controls_have_the_tokens_of_the_library(
    ours: WordPiece, theirs: Callable[[str], list[int]]
) -> None:
    draw = random.Random(28)
    for _ in range(2_000):
        text = "".join(draw.choices(PARTS, k=draw.randint(1, 12)))
        assert ours.tokens(text, MAX_TOKENS) == theirs(text), ascii(text)


def test_letters_that_unicode_had_when_the_library_was_made_are_parted_alike(
    ours: WordPiece, theirs: Callable[[str], list[int]]
) -> None:
    """The library knows an older Unicode: a few hundred marks that came later differ, and stand for nothing."""
    older = unicodedata.ucd_3_2_0
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if older.category(char) in ("Cn", "Co", "Cs") or older.category(char) != unicodedata.category(char):
            continue
        assert ours.tokens(f"a{char}b", MAX_TOKENS) == theirs(f"a{char}b"), hex(code)


def test_many_different_words_do_not_fill_the_memory(ours: WordPiece) -> None:
    before = ours.tokens("read a file", MAX_TOKENS)
    for start in range(0, 2 * MAX_CACHED, 10):
        ours.tokens(" ".join(f"w{number}" for number in range(start, start + 10)), MAX_TOKENS)
    assert len(ours._cached) <= MAX_CACHED
    assert ours.tokens("read a file", MAX_TOKENS) == before
