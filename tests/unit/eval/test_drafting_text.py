"""Wording: first sentences, slips and wishes."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from toolscript.eval.drafting_words import FAR_OFF, MAX_WORDS, VERBS, first_sentence, wish, with_slip


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Read a file. Fails when it is binary.", "Read a file"),
        ("Set your status, e.g. in a meeting. Ends by itself.", "Set your status, e.g. in a meeting"),
        ("Return one page of `rows`!", "Return one page of rows"),
        ("GET /repos/{owner}/commits. Lists commits of a branch.", "Lists commits of a branch"),
        ("Download a web page\n\nArgs:\n    url: where", "Download a web page"),
        ("Download a web page\nArgs: url", "Download a web page"),
        ("Read a\n   file from the disk", "Read a file from the disk"),
        ("检测一段文本是用哪种语言写的。返回代码。", "检测一段文本是用哪种语言写的"),
        ("Показать остатки товара. Быстро.", "Показать остатки товара"),
        ("Search.", ""),
        ("", ""),
        ("{{{ }}} /// ***", ""),
    ],
)
def test_the_first_sentence_is_prose(description: str, sentence: str) -> None:
    assert first_sentence(description) == sentence


def test_a_sentence_without_end_is_cut() -> None:
    assert len(first_sentence("word " * 500).split()) == MAX_WORDS


@given(st.text(max_size=60), st.integers())
def test_a_slip_is_one_or_two_edits_in_one_word(text: str, seed: int) -> None:
    slipped = with_slip(text, Random(seed))
    assert slipped is None or 1 <= Levenshtein.distance(text, slipped) <= 2


@given(st.sampled_from(["read_file", "getPodLogs", "Restart all pods", "сколько товара"]), st.integers())
def test_words_of_any_alphabet_can_slip_and_keep_their_first_letter(text: str, seed: int) -> None:
    slipped = with_slip(text, Random(seed))
    assert slipped is not None
    assert slipped[0] == text[0]


@pytest.mark.parametrize("text", ["", "a b c", "123 456789", "ls -l", "检测一段文本"])
def test_what_has_no_longer_word_cannot_slip(text: str) -> None:
    assert with_slip(text, Random(1)) is None


def test_all_ways_to_slip_occur() -> None:
    slips = {with_slip("plot", Random(seed)) for seed in range(200)}
    assert {"pot", "polt", "pllot"} <= slips
    assert {"pkot", "plit", "plpt"} & slips


def wishes(sentence: str) -> set[str | None]:
    return {wish(sentence, Random(seed)) for seed in range(200)}


@pytest.mark.parametrize("sentence", ["List open issues", "Lists open issues"])
def test_a_wish_is_a_form_around_the_verb_or_one_that_means_the_same(sentence: str) -> None:
    found = wishes(sentence)
    assert {"can you list open issues?", "I need to show open issues", "how do I see open issues?"} <= found
    assert not any("lists" in str(one) for one in found)


def test_a_sentence_that_begins_with_no_verb_is_wished_for_whole() -> None:
    found = wishes("Hourly weather forecast for a place")
    assert all("hourly weather forecast for a place" in str(one) for one in found)
    assert len(found) > 1


def test_the_clauses_after_the_first_are_left_out_but_not_what_is_listed() -> None:
    assert "can you list orders of a shop?" in wishes("List orders of a shop, with totals and taxes")
    assert "can you change the title, body or labels?" in wishes("Change the title, body or labels")


@pytest.mark.parametrize("sentence", ["", "检测一段文本是用哪种语言写的", "Показать остатки товара"])
def test_there_are_wishes_in_english_only(sentence: str) -> None:
    assert wishes(sentence) == {None}


def test_no_verb_stands_for_itself_and_no_request_occurs_twice() -> None:
    assert [verb for verb, others in VERBS.items() if verb in others] == []
    assert len({text.casefold() for text in FAR_OFF}) == len(FAR_OFF) >= 50
