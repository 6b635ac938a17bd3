"""A compound request is split into sub-queries; a single one stays whole."""

import pytest
from hypothesis import given, settings

from tests.unit.core.retrieval.builders import HOSTILE, HOSTILE_CHARACTERS, MAX_SECONDS, RequestTexts, seconds_for
from toolscript.core.retrieval.request import (
    LEAD_IN,
    MAX_SUBQUERIES,
    PREPOSITIONS,
    parse_query,
    subject_of,
    subqueries_in,
    words_in_order,
)


@pytest.mark.parametrize(
    ("text", "subqueries"),
    [
        ("read the notes and send a mail to Bob", ["read the notes", "send a mail to Bob"]),
        (
            "Find flights to Rome, book a hotel and then email the plan to my team",
            ["Find flights to Rome", "book a hotel", "email the plan to my team"],
        ),
        (
            "Search the web for news; summarize the best article",
            ["Search the web for news", "summarize the best article"],
        ),
        ("list all issues\nclose the stale ones\n", ["list all issues", "close the stale ones"]),
        ("read the log as well as count its lines", ["read the log", "count its lines"]),
        ("copy the old folder before delete the folder", ["copy the old folder", "delete the folder"]),
        (
            "I am looking for a flight and I also want to rent a car",
            ["I am looking for a flight", "I also want to rent a car"],
        ),
        (
            "Please read the file and then please also delete the folder, thank you",
            ["Please read the file", "please also delete the folder"],
        ),
        (
            "find the old report. ok. send the report to Ann",
            ["find the old report. ok.", "send the report to Ann"],
        ),
    ],
)
def test_subqueries_are_split_at_the_words_that_join_them(text: str, subqueries: list[str]) -> None:
    assert subqueries_in(text) == subqueries


@pytest.mark.parametrize(
    "text",
    [
        "",
        "delete the file",
        "show me cats and dogs",
        "read and write files",
        "open it, then close it",
        "и потом файл",
    ],
)
def test_a_single_request_has_no_subqueries(text: str) -> None:
    assert subqueries_in(text) == []


def test_the_number_of_subqueries_is_limited() -> None:
    expected = [f"find number{letter} of thing{letter}" for letter in "abcdefghij"]
    assert subqueries_in(", ".join(expected)) == expected[:MAX_SUBQUERIES]


@settings(max_examples=200, deadline=None)
@given(RequestTexts)
def test_there_are_several_subqueries_or_none_with_words_of_the_text(text: str) -> None:
    subqueries = subqueries_in(text)
    assert len(subqueries) != 1
    assert len(subqueries) <= MAX_SUBQUERIES
    for subquery in subqueries:
        assert set(words_in_order(subquery)) <= set(words_in_order(text))
        assert len(words_in_order(subquery)) >= 2


@pytest.mark.parametrize(
    ("subquery", "subject"),
    [
        ("show me the blobs in the container", ["blobs"]),
        ("please delete the details of a file", ["file"]),
        ("get information about the weather in Paris", ["weather"]),
        ("what is the capital of France", ["capital"]),
        ("create a new issue for the bug", ["issue"]),
        ("I would like to know the status of my order", ["order"]),
        ("pull request comments", ["pull", "request", "comments"]),
        ("list all", ["all"]),
        ("send email", []),
        ("in on at", []),
        ("", []),
    ],
)
def test_the_subject_is_between_the_verb_and_the_first_preposition(subquery: str, subject: list[str]) -> None:
    assert subject_of(subquery) == subject


@settings(max_examples=200, deadline=None)
@given(RequestTexts)
def test_a_subject_has_words_of_the_text_in_their_order(text: str) -> None:
    subject = subject_of(text)
    words = iter(words_in_order(text))
    assert all(word in words for word in subject)
    assert not set(subject) & (PREPOSITIONS | LEAD_IN)


def test_a_hostile_request_takes_linear_time(subtests: pytest.Subtests) -> None:
    for fragment in HOSTILE:
        with subtests.test(fragment=fragment):
            text = (fragment * HOSTILE_CHARACTERS)[:HOSTILE_CHARACTERS]
            assert seconds_for(subqueries_in, text) < MAX_SECONDS
            assert seconds_for(subject_of, text) < MAX_SECONDS


@pytest.mark.parametrize("fragment", ["i to ", "i have to ", "we'd like to ", "i also would like to ", "to be "])
def test_lead_in_words_are_not_tried_in_every_combination(fragment: str) -> None:
    assert seconds_for(subqueries_in, "find a car and " + fragment * 20 + "zzz") < MAX_SECONDS


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            'add a comment "read it, then delete it" to issue 31 and set its state to closed',
            ['add a comment "read it, then delete it" to issue 31', "set its state to closed"],
        ),
        (
            "find my old letter and rename it to cover-2026.docx",
            ["find my old letter", "rename it to cover-2026.docx"],
        ),
        (
            "make a folder ~/Downloads/big and open http://localhost:3000/a,b in the browser",
            ["make a folder ~/Downloads/big", "open http://localhost:3000/a,b in the browser"],
        ),
    ],
)
def test_steps_have_their_literals_as_they_were_written(text: str, steps: list[str]) -> None:
    request = parse_query(text)
    assert [step.text for step in request.steps] == steps
    assert [step.whole for step in request.steps] == list(request.subqueries)


def test_a_text_with_private_characters_is_split_all_the_same() -> None:
    assert len(parse_query("open the page \ue000 http://a.b and take a \ue001 screenshot of it").steps) == 2
