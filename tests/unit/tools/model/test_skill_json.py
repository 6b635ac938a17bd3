"""Skills as JSON: validation errors, and that written skills can be read back."""

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import InvalidRequest
from toolscript.core.taxonomy import Skill
from toolscript.tools.model.skill_json import (
    MAX_DESCRIPTION,
    MAX_NAME,
    MAX_WORD,
    MAX_WORDS,
    RESERVED_IDS,
    changed_skill,
    skill_from_json,
    skill_to_json,
    skills_from_text,
)

pytestmark = pytest.mark.requirement("SK-001")

IDS = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True).filter(lambda skill_id: skill_id not in RESERVED_IDS)
# Whatever JSON can carry: lone surrogates, NUL, spaces around.
TEXTS = st.text(st.characters(), max_size=60)
WORDS = st.lists(TEXTS.filter(str.strip), max_size=8)
SKILLS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"id": IDS, "name": TEXTS.filter(str.strip)},
    optional={
        "description": TEXTS,
        "parent_domain": st.none() | IDS,
        "keywords": WORDS,
        "examples": WORDS,
        "is_active": st.booleans(),
    },
)
CRM: dict[str, Any] = {"id": "crm", "name": "CRM"}


@given(SKILLS)
def test_a_skill_that_was_read_is_the_same_after_it_was_written(data: dict[str, Any]) -> None:
    skill = skill_from_json(data)
    assert skill_from_json(json.loads(json.dumps(skill_to_json(skill)))) == skill


@given(st.lists(SKILLS, max_size=5, unique_by=lambda skill: skill["id"]))
def test_a_list_and_lines_of_the_same_skills_are_read_alike(rows: list[dict[str, Any]]) -> None:
    expected = [skill_from_json(row) for row in rows]
    assert skills_from_text(json.dumps(rows, indent=1)) == expected
    assert skills_from_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows)) == expected


def test_omitted_fields_are_empty_and_a_skill_is_active_by_default() -> None:
    assert skill_from_json(CRM) == Skill("crm", "CRM", "", None, (), (), is_active=True)


def test_words_are_kept_once_in_their_order() -> None:
    assert skill_from_json({**CRM, "keywords": ["b", " a ", "b", "a"]}).keywords == ("b", "a")


def test_text_that_no_database_stores_is_made_visible() -> None:
    assert skill_from_json({**CRM, "name": "a\0b\ud800"}).name == "a\ufffdb\ufffd"


@pytest.mark.parametrize("largest", [MAX_NAME, MAX_DESCRIPTION, MAX_WORD, MAX_WORDS])
def test_the_maximum_is_accepted(largest: int) -> None:
    largest_of: dict[int, dict[str, Any]] = {
        MAX_NAME: {"name": "n" * MAX_NAME},
        MAX_DESCRIPTION: {"description": "d" * MAX_DESCRIPTION},
        MAX_WORD: {"keywords": ["k" * MAX_WORD]},
        MAX_WORDS: {"examples": [f"tool_{number}" for number in range(MAX_WORDS)]},
    }
    skill = skill_from_json({**CRM, **largest_of[largest]})
    assert largest in (len(skill.name), len(skill.description), *map(len, skill.keywords), len(skill.examples))


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"id": "Big"}, "id"),
    ({"id": "1st"}, "id"),
    ({"id": "a" * 65}, "id"),
    ({"id": "a\n"}, "id"),
    ({"id": None}, "id"),
    ({"id": 7}, "id"),
    ({"id": "search"}, "id"),
    ({"name": ""}, "name"),
    ({"name": "  "}, "name"),
    ({"name": None}, "name"),
    ({"name": "n" * (MAX_NAME + 1)}, "name"),
    ({"description": "d" * (MAX_DESCRIPTION + 1)}, "description"),
    ({"description": ["text"]}, "description"),
    ({"parent_domain": "No Id"}, "parent_domain"),
    ({"parent_domain": ""}, "parent_domain"),
    ({"keywords": "one, two"}, "keywords"),
    ({"keywords": ["ok", " "]}, "keywords"),
    ({"keywords": ["k" * (MAX_WORD + 1)]}, "keywords"),
    ({"keywords": [f"word{number}" for number in range(MAX_WORDS + 1)]}, "keywords"),
    ({"examples": [1]}, "examples"),
    ({"is_active": "yes"}, "is_active"),
    ({"keyword": ["typo"]}, "keyword"),
]


def test_an_error_names_the_invalid_field(subtests: pytest.Subtests) -> None:
    for wrong, field in INVALID:
        with subtests.test(wrong=wrong, field=field):
            with pytest.raises(InvalidRequest) as refused:
                skill_from_json({**CRM, **wrong})
            assert refused.value.details["field"] == field
            assert field in refused.value.message


def test_only_an_object_is_a_skill() -> None:
    with pytest.raises(InvalidRequest, match="JSON object"):
        skill_from_json(["crm"])


def test_a_change_keeps_the_other_fields_and_cannot_change_the_id() -> None:
    skill = skill_from_json({**CRM, "keywords": ["lead"], "parent_domain": "sales"})
    assert changed_skill(skill, {"name": "Customers"}) == Skill(
        "crm", "Customers", parent_domain="sales", keywords=("lead",)
    )
    assert changed_skill(skill, {"parent_domain": None}).parent_domain is None
    with pytest.raises(InvalidRequest, match="id of a skill cannot change"):
        changed_skill(skill, {"id": "other"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"id": "crm", "name": "CRM"}, {"id": "x"}]', "skill 2: name is missing"),
        ('{"id": "crm", "name": "CRM"}\n\n{"id": "x"}', "line 3: name is missing"),
        ('{"id": "crm", "name": "CRM"}\nnot json', "line 2 is not JSON"),
        ("[1", "the list is not JSON"),
        ("[" * 100_000, "the list is not JSON"),
        ('[{"id": "crm", "name": "CRM"}, {"id": "crm", "name": "CRM"}]', "skill 2: id crm appears twice"),
        ("[1]", "skill 1: a skill must be a JSON object"),
    ],
)
def test_a_file_with_one_error_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        skills_from_text(text)
    assert refused.value.message.startswith(message)


def test_a_listing_can_be_imported_unchanged() -> None:
    listed = {**CRM, "tool_count": 3, "created_at": "2026-01-01T00:00:00+00:00", "updated_at": "later"}
    assert skills_from_text(json.dumps([listed])) == [Skill("crm", "CRM")]


def test_a_byte_order_mark_is_ignored() -> None:
    assert skills_from_text("\ufeff" + json.dumps([CRM])) == skills_from_text("\ufeff" + json.dumps(CRM))


def test_the_default_taxonomy_is_within_the_limits() -> None:
    text = (files("toolscript.core") / "default_taxonomy.json").read_text("utf-8")
    assert len(skills_from_text(text)) == len(json.loads(text))
