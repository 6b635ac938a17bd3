"""Which keywords an item says, however it writes them, and how much each counts."""

import pytest

from tests.unit.tools.classify.builders import SKILLS, many_skills, tool
from toolscript.core.taxonomy import Skill
from toolscript.tools.classify.rules import KeywordIndex

INDEX = KeywordIndex(SKILLS)


def said(name: str, description: str = "", server: str = "server") -> dict[str, float]:
    return {one.keyword.text: one.weight for one in INDEX.said_by(tool(name, description, server))}


@pytest.mark.parametrize("text", ["timezone", "time zone", "Time-Zones", "time_zone", "timeZone", "TIME ZONES"])
def test_a_phrase_is_found_however_it_is_written(text: str) -> None:
    assert list(said("set", f"Sets the {text} of somebody.")) == ["time zone"]


@pytest.mark.parametrize("text", ["profile", "zone of time", "time and zone", "pathology", "", "时间"])
def test_a_keyword_inside_another_word_or_out_of_order_is_not_said(text: str) -> None:
    assert said("show", f"Shows the {text}.") == {}


def test_a_keyword_counts_once_where_it_counts_most() -> None:
    in_name, in_server = said("read_file", "A file, and a file.", "file"), said("read", "A file.", "file")
    in_description = said("read", "A file, and a file, and many files.")
    assert in_name["file"] > in_server["file"] > in_description["file"] > 0


def test_a_keyword_that_more_skills_have_counts_less() -> None:
    found = said("calendar_event")
    assert found["calendar"] > found["event"] > 0


def test_keywords_without_words_are_no_keywords() -> None:
    index = KeywordIndex([Skill("a", "A", keywords=("", " ", "-", "?!", "one"))])
    assert [one.keyword.text for one in index.said_by(tool("one", "? - !"))] == ["one"]


def test_a_word_that_a_thousand_skills_have_is_one_keyword() -> None:
    (found,) = KeywordIndex(many_skills(1_000)).said_by(tool("thing"))
    assert len(found.keyword.skills) == 1_000
