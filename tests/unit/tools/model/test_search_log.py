"""An entry of the search log has what the setting keeps, and says whether the catalog lacks something."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.tools.model.answer import Timings, ToolAnswer, ToolHit
from toolscript.tools.model.query import Strategy, ToolQuery
from toolscript.tools.model.search_log import (
    Channel,
    LoggedSearch,
    SearchDetail,
    SearchPosition,
    logged_search,
)

pytestmark = pytest.mark.requirement("DOC-007")

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
QUERY_ID = str(UUID(int=7))
QUERY = ToolQuery("book a flight", namespaces=("blue", "red"), search_type=SearchType.HYBRID)
HIT = ToolHit(17, ItemKind.TOOL, "calendar", "create", "Creates an event", 0.5, confidence=0.25)


def entry(keeps: SearchDetail = SearchDetail.TEXT, **answer: Any) -> LoggedSearch:
    values = {
        "query": QUERY.text,
        "hits": (HIT,),
        "candidate_count": 1,
        "search_type_used": "hybrid",
        "timings": Timings(total=8.4),
        "good_match": True,
        "unmatched": ("flight",),
        "strategy_used": Strategy.HYBRID,
        **answer,
    }
    return logged_search(QUERY, ToolAnswer(**values), keeps, Channel.MCP, QUERY_ID, NOW)


def test_an_entry_has_the_figures_of_a_search() -> None:
    assert entry() == LoggedSearch(
        at=NOW,
        query_id=QUERY_ID,
        namespaces=("blue", "red"),
        channel=Channel.MCP,
        search_type=SearchType.HYBRID,
        strategy=Strategy.HYBRID,
        hits=1,
        good_match=True,
        took_ms=8.4,
        text="book a flight",
        unmatched=("flight",),
        tool_id=17,
        confidence=0.25,
    )


def test_without_texts_no_word_of_the_query_is_kept_not_even_as_a_hash() -> None:
    kept = entry(SearchDetail.FIGURES)
    assert (kept.text, kept.unmatched, kept.text_key) == ("", (), None)
    assert "flight" not in repr(kept)
    assert (kept.tool_id, kept.hits, kept.good_match) == (17, 1, True)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({}, True),
        ({"good_match": False}, False),
        ({"good_match": None}, None),
        ({"good_match": None, "hits": ()}, False),
        ({"good_match": False, "hits": (), "near_misses": (HIT,)}, False),
        ({"good_match": False, "hits": (), "degraded": ("index",)}, None),
        ({"good_match": False, "degraded": ("embedding",)}, None),
    ],
)
def test_a_search_that_was_not_complete_says_nothing_and_one_without_hits_has_no_match(
    answer: dict[str, Any], verdict: bool | None
) -> None:
    assert entry(**answer).good_match is verdict


def test_the_nearest_tool_is_the_first_hit_or_the_first_near_miss() -> None:
    assert entry(hits=(), near_misses=(HIT,)).tool_id == 17
    assert (entry(hits=()).tool_id, entry(hits=()).confidence) == (None, None)


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("Book a flight!", "book  a\nFLIGHT", True),
        ("ＦＵＬＬ width", "full WIDTH", True),
        ("straße", "STRASSE", True),
        ("???", "!!!", False),
        ("book a flight", "book a fight", False),
        ("日本語", "日本", False),
    ],
)
def test_texts_that_differ_in_case_and_punctuation_only_are_one_request(text: str, other: str, same: bool) -> None:
    keys = [replace(entry(), text=words).text_key for words in (text, other)]
    assert None not in keys
    assert (keys[0] == keys[1]) is same


@pytest.mark.parametrize(
    "text", ["", "x", f"{NOW.isoformat()} x", f"x {QUERY_ID}", f"2026-01-31T12:00:00 {QUERY_ID}"]
)
def test_only_a_position_is_read_as_one(text: str) -> None:
    position = SearchPosition(NOW, QUERY_ID)
    assert SearchPosition.parse(str(position)) == position
    assert SearchPosition.parse(text) is None
