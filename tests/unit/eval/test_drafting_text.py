"""Texts of drafts: first sentences, typos and requests."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from toolscript_eval.drafting_words import MAX_WORDS, OFF_TOPIC, VERBS, first_sentence, phrase_request, with_typo


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
def test_a_typo_is_one_or_two_edits_in_one_word(text: str, seed: int) -> None:
    with_one_typo = with_typo(text, Random(seed))
    assert with_one_typo is None or 1 <= Levenshtein.distance(text, with_one_typo) <= 2


@given(st.sampled_from(["read_file", "getPodLogs", "Restart all pods", "сколько товара"]), st.integers())
def test_words_of_any_alphabet_can_have_a_typo_and_keep_their_first_letter(text: str, seed: int) -> None:
    with_one_typo = with_typo(text, Random(seed))
    assert with_one_typo is not None
    assert with_one_typo[0] == text[0]


@pytest.mark.parametrize("text", ["", "a b c", "123 456789", "ls -l", "检测一段文本"])
def test_a_text_without_longer_words_has_no_typo(text: str) -> None:
    assert with_typo(text, Random(1)) is None


def test_all_kinds_of_typos_occur() -> None:
    typos = {with_typo("plot", Random(seed)) for seed in range(200)}
    assert {"pot", "polt", "pllot"} <= typos
    assert {"pkot", "plit", "plpt"} & typos


def requests(sentence: str) -> set[str | None]:
    return {phrase_request(sentence, Random(seed)) for seed in range(200)}


@pytest.mark.parametrize("sentence", ["List open issues", "Lists open issues"])
def test_a_request_is_a_form_around_the_verb_or_a_synonym(sentence: str) -> None:
    texts = requests(sentence)
    assert {"can you list open issues?", "I need to show open issues", "how do I see open issues?"} <= texts
    assert not any("lists" in str(item) for item in texts)


def test_a_sentence_without_a_leading_verb_is_requested_whole() -> None:
    texts = requests("Hourly weather forecast for a place")
    assert all("hourly weather forecast for a place" in str(item) for item in texts)
    assert len(texts) > 1


def test_the_clauses_after_the_first_are_left_out_but_not_what_is_listed() -> None:
    assert "can you list orders of a shop?" in requests("List orders of a shop, with totals and taxes")
    assert "can you change the title, body or labels?" in requests("Change the title, body or labels")


@pytest.mark.parametrize("sentence", ["", "检测一段文本是用哪种语言写的", "Показать остатки товара"])
def test_requests_are_english_only(sentence: str) -> None:
    assert requests(sentence) == {None}


def test_no_verb_is_its_own_synonym_and_no_request_occurs_twice() -> None:
    assert [verb for verb, synonyms in VERBS.items() if verb in synonyms] == []
    assert len({text.casefold() for text in OFF_TOPIC}) == len(OFF_TOPIC) >= 50
