"""A query that is invalid does not exist."""

from typing import Any

import pytest

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import Fusion, SearchType, resolve_search_type
from toolscript.tools.model.query import Strategy, ToolQuery


@pytest.mark.requirement("BR-005", "BR-008")
def test_a_query_in_plain_words_needs_nothing_else() -> None:
    query = ToolQuery("read a file")
    assert (query.limit, query.threshold, query.kind) == (5, 0.3, None)
    assert query.search_type is SearchType.HYBRID
    assert query.strategy is Strategy.HIERARCHICAL


@pytest.mark.requirement("API-002")
@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "\u2003 "])
def test_a_blank_query_is_refused_as_blank(text: str) -> None:
    with pytest.raises(BlankQuery) as refused:
        ToolQuery(text)
    assert refused.value.hint


@pytest.mark.requirement("API-002", "EC-004")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": "x" * 1_001}, "query"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"threshold": -0.01}, "threshold"),
        ({"threshold": 1.01}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"skill_ids": tuple(f"skill_{number}" for number in range(33))}, "skill_ids"),
        ({"skill_ids": ("Mail",)}, "skill_ids"),
        ({"skill_ids": ("mail\n",)}, "skill_ids"),
        ({"skill_ids": ("",)}, "skill_ids"),
        ({"skill_ids": ("m" * 65,)}, "skill_ids"),
        ({"skill_ids": ("1mail",)}, "skill_ids"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ToolQuery(**{"text": "mail"} | fields)
    assert refused.value.details == {"field": field}
    assert not isinstance(refused.value, BlankQuery)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "x" * 1_000},
        {"limit": 1},
        {"limit": 100},
        {"threshold": 0.0},
        {"threshold": 1.0},
        {"kind": ItemKind.PROMPT},
        {"skill_ids": tuple(f"skill_{number}" for number in range(32))},
        {"skill_ids": ("m" * 64, "a", "a1_b2")},
    ],
)
def test_the_bounds_themselves_are_allowed(fields: dict[str, Any]) -> None:
    query = ToolQuery(**{"text": "mail"} | fields)
    assert {name: getattr(query, name) for name in fields} == fields


@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize("text", ["'; DROP TABLE items; --", "<script>", "100% $HOME \\ {}", "🙂", "?"])
def test_special_characters_are_text(text: str) -> None:
    assert ToolQuery(text).text == text


@pytest.mark.requirement("EC-005")
def test_characters_that_cannot_be_sent_anywhere_are_made_visible() -> None:
    assert ToolQuery("read\0 \ud800 file").text == "read� � file"


@pytest.mark.parametrize("default", SearchType)
def test_a_requested_search_type_overrides_the_setting(default: SearchType) -> None:
    assert resolve_search_type(SearchType.KEYWORD, default) is SearchType.KEYWORD
    assert resolve_search_type(SearchType.KEYWORD, default, Fusion.RRF) is SearchType.KEYWORD


@pytest.mark.parametrize("default", SearchType)
def test_without_a_search_type_the_setting_applies_unless_a_fusion_is_requested(default: SearchType) -> None:
    assert resolve_search_type(None, default) is default
    assert resolve_search_type(None, default, Fusion.ZSCORE) is SearchType.HYBRID
