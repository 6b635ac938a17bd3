"""A request for several things is taken apart; a request for one is left whole."""

import pytest
from hypothesis import given, settings

from tests.unit.core.ranking.builders import HOSTILE, HOSTILE_CHARACTERS, MAX_SECONDS, RequestTexts, seconds_for
from toolscript.core.retrieval.request import (
    LEAD_IN,
    MAX_SUBQUERIES,
    PREPOSITIONS,
    subject_of,
    subqueries_in,
    words_in_order,
)


@pytest.mark.parametrize(
    ("text", "wishes"),
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
def test_wishes_are_told_apart_by_the_words_that_join_them(text: str, wishes: list[str]) -> None:
    assert subqueries_in(text) == wishes


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
def test_a_request_for_one_thing_has_no_single_wishes(text: str) -> None:
    assert subqueries_in(text) == []


def test_of_very_many_wishes_the_first_few_are_taken() -> None:
    asked = [f"find number{letter} of thing{letter}" for letter in "abcdefghij"]
    assert subqueries_in(", ".join(asked)) == asked[:MAX_SUBQUERIES]


@settings(max_examples=200, deadline=None)
@given(RequestTexts)
def test_there_are_several_wishes_or_none_and_all_of_them_were_said(text: str) -> None:
    wishes = subqueries_in(text)
    assert len(wishes) != 1
    assert len(wishes) <= MAX_SUBQUERIES
    for wish in wishes:
        assert set(words_in_order(wish)) <= set(words_in_order(text))
        assert len(words_in_order(wish)) >= 2


@pytest.mark.parametrize(
    ("wish", "subject"),
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
def test_the_subject_stands_between_the_verb_and_the_first_preposition(wish: str, subject: list[str]) -> None:
    assert subject_of(wish) == subject


@settings(max_examples=200, deadline=None)
@given(RequestTexts)
def test_a_subject_is_made_of_words_that_were_said_in_their_order(text: str) -> None:
    subject = subject_of(text)
    said = iter(words_in_order(text))
    assert all(word in said for word in subject)
    assert not set(subject) & (PREPOSITIONS | LEAD_IN)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_request_takes_no_longer_than_it_is_long(piece: str) -> None:
    text = (piece * HOSTILE_CHARACTERS)[:HOSTILE_CHARACTERS]
    assert seconds_for(subqueries_in, text) < MAX_SECONDS
    assert seconds_for(subject_of, text) < MAX_SECONDS


@pytest.mark.parametrize("piece", ["i to ", "i have to ", "we'd like to ", "i also would like to ", "to be "])
def test_words_that_lead_in_are_not_tried_in_every_combination(piece: str) -> None:
    assert seconds_for(subqueries_in, "find a car and " + piece * 20 + "zzz") < MAX_SECONDS
