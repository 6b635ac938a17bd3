"""Rules of a person: which requests they apply to, what they do to a request, and which rules are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import WORDS, catalog, having, stem
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.curation import (
    MAX_LETTERS,
    MAX_WORDS,
    NO_CURATION,
    CuratedRequest,
    Curation,
    Rule,
    RuleKind,
)
from toolscript.core.retrieval.request import SYNONYM_WEIGHT, parse_query, pattern_of
from toolscript.core.retrieval.rerank import FeatureReranker, Fit, unmatched_words
from toolscript.core.retrieval.terms import STEM_SHARE, query_terms

TOOL = "github__create_pull_request"


def promote(words: str, tool: str = TOOL) -> Rule:
    return Rule(RuleKind.PROMOTE, words, tool)


def never(words: str, tool: str = TOOL) -> Rule:
    return Rule(RuleKind.NEVER, words, tool)


def synonym(words: str, means: str, *, mutual: bool = False) -> Rule:
    return Rule(RuleKind.SYNONYM, words, means=means, mutual=mutual)


def applied(text: str, *rules: Rule) -> CuratedRequest:
    return Curation(rules).apply(parse_query(text))


@pytest.mark.parametrize(
    ("words", "request_text"),
    [
        ("open pull request", "please open a pull request"),
        ("open pull request", "requests that I opened, to be pulled"),
        ("open a pull-request", "open the pull request"),
        ("pull request", "a pull-request"),
        ("GitHub ticket", "close the ticket on github"),
        ("github ticket", "close the ticket on GitHub"),
        ("GitHub pull-request", "a github pull request"),
        ("read_file", "read that file"),
        ("get rid of branch", "remove the branch"),
        ("café", "the cafe"),
        ("日本語", "日本語の文書"),
    ],
)
def test_a_rule_applies_to_a_request_with_all_its_words_in_any_form_and_order(
    words: str, request_text: str
) -> None:
    assert [*applied(request_text, promote(words)).promoted] == [TOOL]


@pytest.mark.parametrize(
    ("words", "request_text"),
    [
        ("open pull request", "open a request"),
        ("open pull request", "pull the chair"),
        ("read_file", "read the mail"),
        ("GitHub", "the hub of a wheel"),
        ("PR", "press release"),
        ("日本語", "日本の文書"),
    ],
)
def test_a_rule_does_not_apply_without_one_of_its_words(words: str, request_text: str) -> None:
    curated = applied(request_text, promote(words), never(words, "a__b"), synonym(words, "elephant"))
    assert (curated.promoted, curated.excluded, curated.notes) == ({}, {}, ())
    assert curated.request == parse_query(request_text)


def test_without_rules_the_request_stays_the_same_object() -> None:
    request = parse_query("open a pull request")
    assert NO_CURATION.apply(request).request is request


def test_of_a_promotion_and_a_never_for_the_same_tool_the_never_counts() -> None:
    curated = applied("open a PR", promote("open PR"), never("PR"))
    assert curated.promoted == {}
    assert [*curated.excluded] == [TOOL]


def test_notes_say_what_each_rule_did() -> None:
    rules = synonym("PR", "pull request"), promote("open pull request"), never("open", "shell__run"), never("mail")
    assert applied("open a PR", *rules).notes == (
        "`PR` means `pull request`",
        f"{TOOL} is promoted for `open pull request`",
        "shell__run is never for `open`",
    )


def test_a_synonym_adds_the_terms_of_its_meaning_below_the_weight_of_typed_words() -> None:
    before, after = parse_query("merge my PR"), applied("merge my PR", synonym("PR", "pull request")).request
    added = {term: after.whole.terms[term] for term in after.whole.terms if term not in before.whole.terms}
    assert added == {
        term: pytest.approx(SYNONYM_WEIGHT * weight) for term, weight in query_terms("pull request").items()
    }
    assert before.whole.terms.items() <= after.whole.terms.items(), "typed words keep their weights"
    assert (after.whole.stems, after.text) == (before.whole.stems, before.text)
    assert after.texts == ("merge my pull request",), "a model knows nothing of what a person's words mean"
    assert SYNONYM_WEIGHT < 1


def test_a_typed_word_keeps_its_weight_when_a_synonym_means_it_too() -> None:
    request = applied("request a PR", synonym("PR", "pull request")).request
    assert request.whole.terms[stem("request")] == STEM_SHARE
    assert request.whole.terms[stem("pull")] == pytest.approx(SYNONYM_WEIGHT * STEM_SHARE)


def test_a_synonym_works_one_way_unless_it_is_mutual() -> None:
    text = "merge the pull request"
    assert stem("pr") not in applied(text, synonym("PR", "pull request")).request.whole.terms
    assert stem("pr") in applied(text, synonym("PR", "pull request", mutual=True)).request.whole.terms


def test_synonyms_do_not_apply_to_each_other() -> None:
    curated = applied("my ticket", synonym("ticket", "issue"), synonym("issue", "bug"))
    assert stem("issue") in curated.request.whole.terms
    assert stem("bug") not in curated.request.whole.terms


def test_a_sub_query_gets_only_the_meaning_of_its_own_words() -> None:
    text = "merge the PR, and then send an email to the team"
    merge, send = applied(text, synonym("PR", "pull request")).request.subqueries
    assert stem("pull") in merge.terms
    assert stem("pull") not in send.terms


def fit_of(text: str, item_words: str, *rules: Rule) -> float:
    reranker = FeatureReranker(applied(text, *rules).request, catalog(100))
    return Fit(*reranker.fits([having("", item_words)])[0].tolist()).word_match


def test_an_item_with_the_meaning_matches_the_word_but_less_than_one_with_the_word() -> None:
    rule = synonym("PR", "pull request")
    by_synonym = fit_of("merge PR", "merge pull request", rule)
    assert fit_of("merge PR", "merge", rule) < by_synonym < fit_of("merge PR", "merge pr", rule)
    assert by_synonym == pytest.approx((1 + SYNONYM_WEIGHT) / 2)
    assert fit_of("merge PR", "merge pull", rule) == fit_of("merge PR", "merge"), "half a meaning is none"


def test_a_word_whose_meaning_a_candidate_has_is_not_unmatched() -> None:
    request = applied("merge PR", synonym("PR", "pull request")).request
    assert unmatched_words(request, [having("merge")]) == ("pr",)
    assert unmatched_words(request, [having("merge"), having("", "pull request")]) == ()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"words": " \n"}, "words"),
        ({"words": "to the"}, "words"),
        ({"words": "a" * (MAX_LETTERS + 1)}, "words"),
        ({"words": " ".join(f"w{number}" for number in range(MAX_WORDS + 1))}, "words"),
        ({"words": "a\u202eb"}, "words"),
        ({"words": "`x`"}, "words"),
        ({"tool": None}, "tool"),
        ({"tool": ""}, "tool"),
        ({"means": "issue"}, "means"),
        ({"mutual": True}, "mutual"),
        ({"kind": RuleKind.SYNONYM}, "tool"),
        ({"kind": RuleKind.SYNONYM, "tool": None}, "means"),
        ({"kind": RuleKind.SYNONYM, "tool": None, "means": "tickets"}, "means"),
    ],
)
def test_a_wrong_rule_is_refused_with_the_field_that_is_wrong(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Rule(**{"kind": RuleKind.NEVER, "words": "ticket", "tool": TOOL, **fields})  # type: ignore[arg-type]
    assert refused.value.details == {"field": field}
    assert refused.value.hint


def test_the_spaces_of_words_are_normalised() -> None:
    assert promote("  open\ta \n PR ").words == "open a PR"


@given(st.lists(st.sampled_from(WORDS), min_size=1), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_rules_apply_exactly_where_their_pattern_is_in_the_request(request: list[str], words: list[str]) -> None:
    pattern = pattern_of(" ".join(words))
    if pattern.words:
        parsed = parse_query(" ".join(request))
        others = [promote("elephant", "a__b"), promote("get elephant", "a__c")]
        promoted = Curation([*others, promote(pattern.text)]).apply(parsed).promoted
        assert (TOOL in promoted) == pattern.is_in(parsed.whole.stems)
