"""Literals are arguments of a tool: they are removed from a request, unless they are all of it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import HOSTILE, HOSTILE_CHARACTERS, MAX_SECONDS, RequestTexts, seconds_for
from toolscript.core.retrieval.request import MIN_WORDS, strip_literals
from toolscript.core.retrieval.terms import STOP_WORDS


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('delete the file "notes.txt" in <folder>', "delete the file in"),
        ("search “the old man” in the library", "search in the library"),
        ("find 'the thing' in my notes", "find in my notes"),
        ("read `main.py` as a text file", "read as a text file"),
        ("send mail to bob@example.org about lunch", "send mail to about lunch"),
        ("open https://example.org/a?b=c and print it", "open and print it"),
        ('show {"a": 1} as a table row', "show as a table row"),
        ("list items [a, b] in the cart", "list items in the cart"),
        ("copy /etc/hosts/x to the backup folder", "copy to the backup folder"),
        ("get order 12345 of a customer", "get order of a customer"),
        ("book a table at 12:30 for 4", "book a table at for"),
        ("look up commit 3f2a9bc1de in the log", "look up commit in the log"),
    ],
)
def test_literals_of_every_kind_are_removed(text: str, plain: str) -> None:
    assert strip_literals(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "don't stop the user's music",
        "read and/or write a file",
        "is a < b or b > c",
        'a lone " mark in a request',
        "resize an image to 640x480 pixels wide",
        "use the v2 of the api",
        "call read_file on the long_identifier_without_digits",
        "",
    ],
)
def test_words_and_lone_marks_are_no_literals(text: str) -> None:
    assert strip_literals(text) == text


@pytest.mark.parametrize("text", ['delete "notes.txt"', '"read the file"', "12345", "<a> and <b>", "  42  "])
def test_literals_stay_if_too_few_words_remain(text: str) -> None:
    assert strip_literals(text) == text


@settings(max_examples=200, deadline=None)
@given(RequestTexts)
def test_the_result_is_the_request_or_has_enough_words(text: str) -> None:
    plain = strip_literals(text)
    words = [word for word in re.findall(r"[^\W\d_]{2,}", plain.casefold()) if word not in STOP_WORDS]
    assert plain == text or len(words) >= MIN_WORDS
    assert len(plain) <= len(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abcdefgxyzäß", min_size=1, max_size=12), max_size=8).map(" ".join))
def test_a_request_of_plain_words_is_unchanged(text: str) -> None:
    assert strip_literals(text) == text


def test_a_hostile_request_takes_linear_time(subtests: pytest.Subtests) -> None:
    for fragment in HOSTILE:
        with subtests.test(fragment=fragment):
            text = (fragment * HOSTILE_CHARACTERS)[:HOSTILE_CHARACTERS]
            assert seconds_for(strip_literals, text) < MAX_SECONDS
