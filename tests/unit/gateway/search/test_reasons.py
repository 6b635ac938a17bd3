"""Reasons of hits: each wording, and the fields that contain the words."""

import pytest

from tests.unit.gateway.search.builders import CALENDAR, READ_FILE, SEND_MAIL, index_of, item
from toolscript.core.items import Item
from toolscript.core.retrieval.request import Request, parse_query
from toolscript.core.retrieval.rewriting import default_rewriter
from toolscript.core.retrieval.spelling import corrections
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import domain_of, stems_by_field
from toolscript.gateway.model import ScoreParts, WordMatch
from toolscript.gateway.reasons import matched_words, reason

pytestmark = pytest.mark.requirement("TS-003")

PLAIN = item("acme", "frobnicate", "Frobnicates the whatsit of a gadget", depth="How far the knob goes")
INDEX = index_of((PLAIN, READ_FILE, SEND_MAIL))


def request_of(text: str) -> Request:
    return parse_query(text, corrections(text, INDEX.vocabulary))


def reason_of(parts: ScoreParts, of: Item = PLAIN, inferred: Inferred | None = None) -> str:
    return reason(parts, inferred, domain_of(stems_by_field(of)))


def words(*pairs: tuple[str, str]) -> tuple[WordMatch, ...]:
    return tuple(WordMatch(word, field) for word, field in pairs)


def test_an_exact_name_is_the_only_reason() -> None:
    assert reason_of(ScoreParts(semantic=0.9, words=1.0, fuzzy=1.0, matched=words(("a", "name")))) == "Exact name"
    assert reason_of(ScoreParts(fuzzy=0.995)) == "Exact name"


def test_a_capability_of_a_general_tool_is_the_reason() -> None:
    assert reason_of(ScoreParts(semantic=0.9), inferred=Inferred(0.6, "shell", "git operations")) == (
        "Capability inference (shell → git operations)"
    )
    exact = reason_of(ScoreParts(fuzzy=1.0), inferred=Inferred(0.6, "shell", "git operations"))
    assert exact == "Exact name"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (ScoreParts(fuzzy=0.9), "Fuzzy match of the name"),
        (ScoreParts(semantic=0.3), "Semantic similarity"),
        (ScoreParts(semantic=0.29), "Nearest by meaning"),
        (ScoreParts(), "No word in common"),
        (ScoreParts(words=0.4, matched=words(("gadget", "description"))), "Words gadget"),
        (
            ScoreParts(semantic=0.5, fuzzy=0.8, matched=words(("gadget", "description"))),
            "Fuzzy match of the name + Semantic similarity + words gadget",
        ),
        (
            ScoreParts(semantic=0.5, matched=words(*((letter, "name") for letter in "abcdef"))),
            "Semantic similarity + words a, b, c, d",
        ),
    ],
)
def test_each_kind_of_evidence_has_its_wording(parts: ScoreParts, text: str) -> None:
    assert reason_of(parts) == text


def test_a_corrected_word_names_its_correction() -> None:
    parts = ScoreParts(matched=(WordMatch("gadgte", "description", "gadget"),))
    assert reason_of(parts) == "Words gadgte as gadget"


def test_the_domain_is_named_when_there_is_one() -> None:
    assert (
        reason_of(ScoreParts(semantic=0.5), of=CALENDAR)
        == f"Semantic similarity ({domain_of(stems_by_field(CALENDAR))})"
    )


def test_a_domain_needs_more_than_a_passing_word() -> None:
    assert "calendar" in domain_of(stems_by_field(CALENDAR))
    assert "email" in domain_of(stems_by_field(item("post", "send_email")))
    assert domain_of(stems_by_field(PLAIN)) == ""
    assert domain_of(stems_by_field(item("x", "y", "has a calendar"))) == ""


def test_a_word_is_matched_in_the_field_that_counts_most() -> None:
    def matched(text: str) -> tuple[WordMatch, ...]:
        return matched_words(stems_by_field(PLAIN), request_of(text))

    assert matched("frobnicate") == words(("frobnicate", "name"))
    assert matched("acme") == words(("acme", "server"))
    assert matched("gadgets") == words(("gadgets", "description"))
    assert matched("depth") == words(("depth", "parameter"))
    assert matched("knob") == words(("knob", "parameter_text"))
    assert matched("absent") == ()
    assert matched("knob acme absent depth") == words(
        ("knob", "parameter_text"), ("acme", "server"), ("depth", "parameter")
    )


def test_a_misspelt_word_is_matched_as_it_was_typed() -> None:
    (match,) = matched_words(stems_by_field(PLAIN), request_of("whatsti"))
    assert match == WordMatch("whatsti", "description", "whatsit")


def test_a_word_is_matched_as_another_only_where_the_item_has_it_not() -> None:
    request = parse_query(default_rewriter().read("remember the folder"))
    both = item("memory", "remember", "Remembers what is in memory")
    assert matched_words(stems_by_field(both), request) == (WordMatch("remember", "name"),)
    other = item("files", "list", "Lists a directory of the memory")
    assert matched_words(stems_by_field(other), request) == (
        WordMatch("remember", "description", "memory"),
        WordMatch("folder", "description", "directory"),
    )
