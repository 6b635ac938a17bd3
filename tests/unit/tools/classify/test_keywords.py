"""Which keywords match an item, in any spelling, and the weight of each."""

import pytest

from tests.unit.tools.classify.builders import SKILLS, many_skills, tool
from toolscript.core.taxonomy import Skill
from toolscript.tools.classify.rules import KeywordIndex

INDEX = KeywordIndex(SKILLS)


def keyword_weights(name: str, description: str = "", server: str = "server") -> dict[str, float]:
    return {match.keyword.text: match.weight for match in INDEX.matches(tool(name, description, server))}


@pytest.mark.parametrize("text", ["timezone", "time zone", "Time-Zones", "time_zone", "timeZone", "TIME ZONES"])
def test_a_phrase_is_found_however_it_is_written(text: str) -> None:
    assert list(keyword_weights("set", f"Sets the {text} of somebody.")) == ["time zone"]


@pytest.mark.parametrize("text", ["profile", "zone of time", "time and zone", "pathology", "", "时间"])
def test_a_keyword_inside_another_word_or_out_of_order_does_not_match(text: str) -> None:
    assert keyword_weights("show", f"Shows the {text}.") == {}


@pytest.mark.parametrize(
    ("keyword", "found", "not_found"),
    [
        ("scrape", "scrape scrapes scraped scraping", "scrap"),
        ("currency", "currency currencies", "current"),
        ("accounting", "accounting", "account accounts accounted"),
        ("marketing", "marketing", "market markets"),
        ("structural", "structural structurally", "structure structured structures"),
        ("follower", "follower followers", "follow following"),
        ("statistics", "statistic statistics", "stat"),
        ("aws", "aws", "aw awed"),
        ("файл", "файл файлы файлов", "фай"),
        ("日历", "日历", "日"),
    ],
)
def test_a_keyword_is_found_in_its_inflections_and_not_in_other_words_of_its_stem(
    keyword: str, found: str, not_found: str
) -> None:
    index = KeywordIndex([Skill("a", "A", keywords=(keyword,))])
    assert [word for word in found.split() if not index.matches(tool("x", word))] == []
    assert [word for word in not_found.split() if index.matches(tool("x", word))] == []


def test_a_keyword_counts_once_where_it_counts_most() -> None:
    in_name, in_server = (
        keyword_weights("read_file", "A file, and a file.", "file"),
        keyword_weights("read", "A file.", "file"),
    )
    in_description = keyword_weights("read", "A file, and a file, and many files.")
    assert in_name["file"] > in_server["file"] > in_description["file"] > 0


def test_a_keyword_that_more_skills_have_counts_less() -> None:
    weights = keyword_weights("calendar_event")
    assert weights["calendar"] > weights["event"] > 0


def test_keywords_without_words_are_no_keywords() -> None:
    index = KeywordIndex([Skill("a", "A", keywords=("", " ", "-", "?!", "one"))])
    assert [match.keyword.text for match in index.matches(tool("one", "? - !"))] == ["one"]


def test_a_word_that_a_thousand_skills_have_is_one_keyword() -> None:
    (match,) = KeywordIndex(many_skills(1_000)).matches(tool("thing"))
    assert len(match.keyword.skills) == 1_000


@pytest.mark.parametrize("order", [1, -1])
def test_keywords_with_one_stem_are_found_each_by_its_own_root(order: int) -> None:
    skills = [Skill("books", "Books", keywords=("accounting",)), Skill("users", "Users", keywords=("account",))]
    index = KeywordIndex(skills[::order])
    assert [match.keyword.text for match in index.matches(tool("list_accounts"))] == ["account"]
    found = {match.keyword.text for match in index.matches(tool("close_books", "Does the accounting."))}
    assert "accounting" in found
