"""The default taxonomy: its contents, and that its skills do not overlap."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import pytest

from toolscript.core.retrieval.terms import terms_of_word, words_of
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.skill_json import MAX_WORDS

pytestmark = pytest.mark.requirement("SK-001")

ROWS: list[dict[str, Any]] = json.loads((files("toolscript.core") / "default_taxonomy.json").read_text("utf-8"))
KEYWORDS = [keyword for row in ROWS for keyword in row["keywords"]]
FIELDS = {"id", "name", "description", "parent_domain", "keywords", "examples", "is_active"}


def twice(values: Iterable[object]) -> list[object]:
    return [value for value, count in Counter(values).items() if count > 1]


def stems(keyword: str) -> frozenset[int]:
    return frozenset(terms_of_word(word)[0] for word in words_of(keyword))


def test_the_number_of_skills_is_within_bounds() -> None:
    assert 25 <= len(ROWS) <= 35


def test_every_row_is_a_skill_with_all_its_fields_filled() -> None:
    assert [row["id"] for row in ROWS if row.keys() != FIELDS or not all(row.values())] == []
    assert [skill.id for skill in (Skill(**row) for row in ROWS) if not skill.is_active] == []


@pytest.mark.parametrize("field", ["id", "name", "description"])
def test_no_two_skills_share_a(field: str) -> None:
    assert twice(row[field] for row in ROWS) == []


def test_every_id_is_valid() -> None:
    ids = [row[field] for row in ROWS for field in ("id", "parent_domain")]
    assert [skill_id for skill_id in ids if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", skill_id)] == []


def test_a_keyword_belongs_to_one_skill_in_all_its_forms() -> None:
    assert twice(KEYWORDS) == []
    assert twice(stems(keyword) for keyword in KEYWORDS) == []


def test_a_keyword_is_one_to_three_plain_words() -> None:
    assert [keyword for keyword in KEYWORDS if not re.fullmatch(r"[a-z0-9]+( [a-z0-9]+){0,2}", keyword)] == []
    assert [row["id"] for row in ROWS if not 8 <= len(row["keywords"]) <= MAX_WORDS] == []


def test_an_example_is_the_name_of_a_tool_and_of_one_skill() -> None:
    examples = [example for row in ROWS for example in row["examples"]]
    assert [example for example in examples if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", example)] == []
    assert twice(examples) == []
    assert [row["id"] for row in ROWS if not 4 <= len(row["examples"]) <= 6] == []
