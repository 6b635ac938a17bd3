"""Text of answers that a small service does not give: degraded, routed by many skills, hostile."""

import json
from dataclasses import replace

import pytest

from toolscript.cli.tools import why_not_text
from toolscript.cli.tools_text import (
    degraded_lines,
    doubt_lines,
    explained_text,
    hits_table,
    nothing_found_lines,
    routing_text,
    skills_table,
    timings_text,
)
from toolscript.client import answers
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.deadline import Part
from toolscript.tools.model.answer import (
    LOWER_THRESHOLD,
    OTHER_WORDS,
    AbsenceReason,
    Explanation,
    MatchedBy,
    MatchedSkill,
    Timings,
    ToolAnswer,
    ToolHit,
    WhyNotAnswer,
)
from toolscript.tools.model.query import Strategy
from toolscript.tools.schemas.search import ToolSearchAnswer

EVIL = "a\x1b[2J\x07\u202eb\u2028c\nd"
HARMLESS = "a [2J b c d"


def sent(answer: ToolAnswer) -> answers.ToolSearchAnswer:
    """Return the answer as a client receives it."""
    return answers.ToolSearchAnswer.from_json(json.loads(ToolSearchAnswer.of(answer, "1").model_dump_json()))


def skill(id_: str, score: float | None = 0.5, by: MatchedBy = MatchedBy.VECTOR) -> MatchedSkill:
    return MatchedSkill(id_, id_.title(), f"About {id_}", score, 1_234, by)


def routed(
    *skills: MatchedSkill, strategy: Strategy = Strategy.HIERARCHICAL, unskilled: int | None = 0
) -> ToolAnswer:
    ids = tuple(skill_.id for skill_ in skills)
    answer = ToolAnswer("x", (), 0, "hybrid", Timings(), strategy_used=strategy, unskilled_count=unskilled)
    return replace(answer, skills=skills, skill_ids_used=None if strategy is Strategy.DIRECT else ids)


def test_skills_are_named_with_how_they_were_matched() -> None:
    answer = routed(skill("files", 0.613), skill("git", 0.3, MatchedBy.WORDS), unskilled=2_400)
    assert routing_text(sent(answer), requested="hierarchical") == (
        "routed by 2 skills: files (vector 0.61), git (words); about 2,400 items are in no skill, and left out"
    )


@pytest.mark.parametrize("unskilled", [0, None])
def test_an_unknown_or_zero_count_of_unskilled_items_is_not_mentioned(unskilled: int | None) -> None:
    answer = routed(skill("files"), unskilled=unskilled)
    assert routing_text(sent(answer), requested="hierarchical") == "routed by 1 skill: files (vector 0.50)"


def test_many_skills_are_counted_and_the_first_are_named() -> None:
    text = routing_text(sent(routed(*(skill(f"s{number}") for number in range(32)))), requested="hierarchical")
    assert text.startswith("routed by 32 skills: s0 (vector 0.50), s1")
    assert text.endswith("s7 (vector 0.50) and 24 more")


def test_a_search_of_all_items_leaves_nothing_out() -> None:
    both = routed(skill("files"), strategy=Strategy.HYBRID, unskilled=9)
    assert "left out" not in routing_text(sent(both), requested="hybrid")


@pytest.mark.parametrize(
    ("strategy", "degraded", "expected"),
    [
        ("direct", (), "all items were searched"),
        ("hierarchical", (), "no skill matched: all items were searched"),
        ("hybrid", (), "no skill matched: all items were searched"),
        ("hierarchical", ("skills",), "all items were searched"),
    ],
)
def test_a_missing_skill_is_mentioned_only_after_a_skill_search(
    strategy: str, degraded: tuple[str, ...], expected: str
) -> None:
    answer = replace(routed(strategy=Strategy.DIRECT), degraded=degraded)
    assert routing_text(sent(answer), requested=strategy) == expected


def test_every_degraded_part_has_a_message_and_an_unknown_one_is_named() -> None:
    lines = list(degraded_lines([*Part, f"news{EVIL}"]))
    assert len(set(lines)) == len(Part) + 1
    assert lines[-1] == f"degraded: without news{HARMLESS}, which failed"
    assert not [line for line in lines[:-1] if "which failed" in line]


def test_a_search_that_did_not_run_does_not_blame_the_threshold() -> None:
    lines = list(nothing_found_lines(sent(replace(routed(), search_type_used="none", good_match=False)), "x"))
    assert lines == ["nothing was searched for 'x'"]


@pytest.mark.parametrize(
    ("hint", "first", "called", "last"),
    [
        (OTHER_WORDS, "nothing found for 'x': no good match", "a guess", "hint: try other words"),
        (
            LOWER_THRESHOLD,
            "nothing found for 'x': none reaches the threshold",
            "nearest",
            "hint: `--preset recall` or a lower `--threshold` shows them",
        ),
    ],
)
def test_what_fits_below_the_threshold_is_told_from_what_does_not_fit(
    hint: str, first: str, called: str, last: str
) -> None:
    near = ToolHit(1, ItemKind.TOOL, "files", "read_file", "", 0.2, confidence=0.2)
    answer = replace(routed(), good_match=False, near_misses=(near,), hint=hint)
    lines = list(nothing_found_lines(sent(answer), "x"))
    assert (lines[0], lines[-1]) == (first, last)
    assert lines[1].startswith(f"  {called}: files__read_file")


def test_no_hit_in_the_skills_suggests_a_wider_search() -> None:
    assert list(nothing_found_lines(sent(routed(skill("empty"))), "x")) == [
        "nothing found for 'x'",
        "hint: `--strategy hybrid` searches the items of other skills too",
    ]
    assert list(nothing_found_lines(sent(routed(strategy=Strategy.DIRECT)), "x")) == ["nothing found for 'x'"]


@pytest.mark.parametrize(
    ("confidence", "good_match", "expected"),
    [
        (0.74, True, []),
        (0.33, True, ["matched nothing: anna"]),
        (None, None, ["matched nothing: anna"]),
        (0.74, False, ["no good match: the best of these is a guess; matched nothing: anna"]),
    ],
)
def test_unmatched_words_are_named_unless_the_best_hit_is_likely(
    confidence: float | None, good_match: bool | None, expected: list[str]
) -> None:
    hit = ToolHit(7, ItemKind.TOOL, "disk", "read", "", 0.5, confidence=confidence)
    answer = replace(routed(), hits=(hit,), good_match=good_match, unmatched=("anna",))
    assert list(doubt_lines(sent(answer))) == expected
    assert "matched" not in "".join(doubt_lines(sent(replace(answer, unmatched=()))))


def test_many_words_are_counted_and_the_first_are_named() -> None:
    answer = replace(routed(), good_match=False, unmatched=tuple(f"w{number}" for number in range(11)))
    assert "w0, w1, w2, w3, w4, w5, w6, w7 and 3 more" in next(iter(doubt_lines(sent(answer))))


def test_the_largest_contribution_comes_first_and_unmatched_skills_are_marked() -> None:
    explained = Explanation(2, {"name": 0.2, "action": -0.9}, None, 1.5, ("files",))
    hit = ToolHit(7, ItemKind.TOOL, "disk", "read", "", 0.5, ("files", "git"), explanation=explained)
    answer = sent(replace(routed(skill("files", 0.61)), hits=(hit,)))
    assert explained_text(answer.results[0], answer.metadata.matched_skills or ()).splitlines() == [
        "disk__read, item 7",
        "  place 2, similarity -, words 1.50",
        "  score: action -0.90, name +0.20",
        "  skills: files (vector 0.61), git (not matched)",
    ]
    assert explained_text(answer.results[0], []).endswith("skills: files, git")


def test_only_stages_that_took_time_are_shown() -> None:
    slow, fast = Timings(10.4, 0.0, 21.6, 5.0, 0.2, 33.0), Timings(total=0.7)
    assert timings_text(sent(replace(routed(), timings=slow))) == "took 33 ms: embedding 10, tools 22"
    assert timings_text(sent(replace(routed(), timings=fast))) == "took 1 ms"


def test_control_characters_of_a_service_do_not_reach_the_terminal() -> None:
    evil_skill = MatchedSkill(EVIL, EVIL, EVIL, 0.5, 1, MatchedBy.VECTOR)
    explained = Explanation(1, {EVIL: 1.0}, 0.5, 0.5, (EVIL,))
    hit = ToolHit(1, ItemKind.TOOL, EVIL, EVIL, EVIL, 0.5, (EVIL,), explanation=explained)
    absence = WhyNotAnswer(EVIL, AbsenceReason.UNKNOWN, EVIL, 1, EVIL, 0.5, explained, (EVIL,), (EVIL,))
    found = replace(routed(evil_skill), hits=(hit,), near_misses=(hit,), unmatched=(EVIL,), absence=absence)
    answer = sent(found)
    assert answer.metadata.matched_skills
    assert answer.metadata.why_not
    texts = [
        hits_table(answer.results),
        skills_table(answer.metadata.matched_skills),
        routing_text(answer, requested="hierarchical"),
        *nothing_found_lines(answer, EVIL),
        *doubt_lines(answer),
        explained_text(answer.results[0], answer.metadata.matched_skills),
        why_not_text(answer.metadata.why_not),
    ]
    assert [text for text in texts if not all(char.isprintable() or char == "\n" for char in text)] == []
    assert [text for text in texts if "[2J" not in text] == [
        "hint: `--preset recall` or a lower `--threshold` shows them"
    ]


def test_a_hint_of_the_answer_is_shown_with_hits_and_without() -> None:
    answer = replace(routed(), good_match=False, hint=f"say it in English{EVIL}")
    expected = f"hint: say it in English{HARMLESS}"
    hit = ToolHit(1, ItemKind.TOOL, "files", "read_file", "", 0.5, confidence=0.5)
    assert [*doubt_lines(sent(replace(answer, hits=(hit,))))][-1] == expected
    assert [*nothing_found_lines(sent(replace(answer, near_misses=(hit,))), "x")][-1] == expected
