"""The taxonomy that ships: what a person finds in it, and what keeps its skills apart."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import pytest

from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.core.taxonomy import Skill

pytestmark = pytest.mark.requirement("SK-001")

ROWS: list[dict[str, Any]] = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))
KEYWORDS = [keyword for row in ROWS for keyword in row["keywords"]]
FIELDS = {"id", "name", "description", "parent_domain", "keywords", "examples", "is_active"}


def twice(values: Iterable[object]) -> list[object]:
    return [value for value, count in Counter(values).items() if count > 1]


def stems(keyword: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in words_of(keyword))


def test_there_are_enough_skills_to_tell_apart_and_few_enough_to_read() -> None:
    assert 25 <= len(ROWS) <= 35


def test_every_row_is_a_skill_with_all_its_fields_filled() -> None:
    assert [row["id"] for row in ROWS if row.keys() != FIELDS or not all(row.values())] == []
    assert [skill.id for skill in (Skill(**row) for row in ROWS) if not skill.is_active] == []


@pytest.mark.parametrize("field", ["id", "name", "description"])
def test_no_two_skills_share_a(field: str) -> None:
    assert twice(row[field] for row in ROWS) == []


def test_every_id_is_one_that_is_accepted() -> None:
    ids = [row[field] for row in ROWS for field in ("id", "parent_domain")]
    assert [one for one in ids if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", one)] == []


def test_a_keyword_speaks_for_one_skill_in_whatever_form_it_is_written() -> None:
    assert twice(KEYWORDS) == []
    assert twice(stems(keyword) for keyword in KEYWORDS) == []


def test_a_keyword_is_one_to_three_plain_words() -> None:
    assert [one for one in KEYWORDS if not re.fullmatch(r"[a-z0-9]+( [a-z0-9]+){0,2}", one)] == []
    assert [row["id"] for row in ROWS if not 8 <= len(row["keywords"]) <= 16] == []


def test_an_example_is_the_name_of_a_tool_and_of_one_skill() -> None:
    examples = [example for row in ROWS for example in row["examples"]]
    assert [one for one in examples if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", one)] == []
    assert twice(examples) == []
    assert [row["id"] for row in ROWS if not 4 <= len(row["examples"]) <= 6] == []
