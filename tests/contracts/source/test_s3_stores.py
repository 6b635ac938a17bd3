"""S3: the tables, the payloads of both collections, and the vector of a skill."""

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from tests.conftest import Installation
from tests.contracts.source.s3_builders import CALENDAR, CATEGORIES, FILES, MAIL, SKILLS, World, installed, world
from toolscript.core.settings.service import Settings

COLUMNS = """
SELECT column_name, data_type || coalesce('/' || nullif(udt_name, data_type), ''), is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'mcp' AND table_name = %s
"""


@pytest.fixture(scope="module")
def own(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installed(engines, migrated_database, model_folder, tmp_path_factory.mktemp("s3")) as fresh:
        yield fresh


@pytest.fixture(scope="module")
async def stored(own: Installation) -> AsyncIterator[World]:
    async with world(own) as opened:
        yield opened


def columns(stored: World, table: str) -> dict[str, tuple[str, bool, str | None]]:
    """Type, whether it may be null, and default."""
    return {
        name: (kind.split("/")[0], null == "YES", default)
        for name, kind, null, default in stored.rows(COLUMNS, table)
    }


def unit(vector: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.states("S3-041", "S3-150", "S3-153", "S3-155", "S3-156", "S3-157", "S3-198")
async def test_categories_are_rows_of_skill_categories_as_people_wrote_them(stored: World) -> None:
    rows = stored.rows(
        "SELECT id, name, description, parent_domain, keywords, examples, is_active FROM mcp.skill_categories"
        " WHERE id = ANY(%s) ORDER BY id",
        [CALENDAR, MAIL],
    )
    calendar, mail = CATEGORIES[:2]
    assert rows == [
        (
            *(calendar[name] for name in ("id", "name", "description", "parent_domain", "keywords", "examples")),
            True,
        ),
        (mail["id"], mail["name"], mail["description"], None, [], [], True),
    ]
    kinds = columns(stored, "skill_categories")
    assert kinds["description"][:2] == ("text", False)
    assert kinds["keywords"][:2] == kinds["examples"][:2] == ("ARRAY", False)
    assert kinds["is_active"] == ("boolean", False, "true")


@pytest.mark.states("S3-151", "S3-152", "S3-154", "S3-158", "S3-159")
async def test_ids_are_held_to_64_characters_and_times_have_a_zone(stored: World) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        stored.rows("INSERT INTO mcp.skill_categories (id, name) VALUES (%s, 'x') RETURNING id", "a" * 65)
    kinds = columns(stored, "skill_categories")
    assert (kinds["name"][:2], kinds["parent_domain"][:2]) == (("text", False), ("text", True))
    assert kinds["created_at"] == kinds["updated_at"] == ("timestamp with time zone", False, "now()")


@pytest.mark.states("S3-160", "S3-165", "S3-166", "S3-168", "S3-199")
async def test_assignments_are_rows_of_tool_skill_assignments_each_pair_once(stored: World) -> None:
    result = stored.rows(
        "SELECT skill_id, confidence, is_primary, tool_id FROM mcp.tool_skill_assignments JOIN mcp.items"
        " ON items.id = tool_id WHERE name = 'create_calendar_event' ORDER BY confidence DESC"
    )
    assert [row[:3] for row in result] == [(CALENDAR, 0.95, True), (MAIL, 0.6, False)]
    kinds = columns(stored, "tool_skill_assignments")
    assert kinds["confidence"] == ("double precision", False, None)
    assert kinds["is_primary"] == ("boolean", False, "false")
    with pytest.raises(psycopg.errors.UniqueViolation):
        stored.rows(
            "INSERT INTO mcp.tool_skill_assignments (tool_id, skill_id, confidence, source)"
            " VALUES (%s, %s, 0.7, 'llm') RETURNING tool_id",
            result[0][3],
            CALENDAR,
        )


@pytest.mark.states("S3-161", "S3-162", "S3-164", "S3-167", "S3-169", "S3-170")
async def test_assignments_refer_to_items_and_skills_that_there_are(stored: World) -> None:
    insert = (
        "INSERT INTO mcp.tool_skill_assignments (tool_id, skill_id, confidence, source)"
        " VALUES (%s, %s, 0.7, 'llm') RETURNING tool_id"
    )
    ((item,),) = stored.rows("SELECT id FROM mcp.items WHERE name = 'read_file'")
    for tool, skill in [(item, "nowhere"), (10**9, CALENDAR)]:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            stored.rows(insert, tool, skill)
    indexes = dict(stored.rows("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'mcp'"))
    assert "(tool_id, skill_id)" in indexes["tool_skill_assignments_pkey"]
    assert "(skill_id, tool_id)" in indexes["tool_skill_assignments_skill"]
    assert columns(stored, "tool_skill_assignments")["assigned_at"][2] == "now()"


@pytest.mark.states("S3-163")
async def test_a_tool_that_is_deleted_takes_its_assignments_with_it(stored: World) -> None:
    with psycopg.connect(stored.installation.environment["TOOLSCRIPT_POSTGRES_URL"]) as conn:
        count = "SELECT count(*) FROM mcp.tool_skill_assignments WHERE tool_id = %s"
        (item,) = conn.execute("SELECT id FROM mcp.items WHERE name = 'read_file'").fetchone() or (0,)
        assert conn.execute(count, (item,)).fetchone() == (1,)
        conn.execute("DELETE FROM mcp.items WHERE id = %s", (item,))
        assert conn.execute(count, (item,)).fetchone() == (0,)
        conn.rollback()


@pytest.mark.states("S3-171", "S3-172", "S3-173", "S3-174", "S3-175", "S3-176", "S3-178", "S3-179")
async def test_suggestions_are_rows_of_skill_suggestions(stored: World) -> None:
    rows = stored.rows(
        "SELECT suggested_name, suggested_description, status, reviewed_by FROM mcp.skill_suggestions"
    )
    assert rows == [("Circus", "Tools for acrobats and jugglers.", "pending", None)]
    kinds = columns(stored, "skill_suggestions")
    assert (kinds["id"][:2], kinds["suggested_name"]) == (("bigint", False), ("text", False, None))
    assert kinds["suggested_description"][:2] == ("text", False)
    assert kinds["status"] == ("text", False, "'pending'::text")
    assert (kinds["reviewed_by"][:2], kinds["created_at"][2]) == (("text", True), "now()")
    asking = "SELECT name FROM mcp.skill_suggestion_items JOIN mcp.items ON items.id = tool_id"
    assert stored.rows(asking) == [("juggle_clubs",)]


@pytest.mark.states("S3-016", "S3-017", "S3-018", "S3-019", "S3-021", "S3-067", "S3-068", "S3-071")
@pytest.mark.states("S3-183", "S3-184", "S3-185", "S3-186", "S3-187", "S3-205", "S3-206")
async def test_a_point_of_the_skill_index_has_the_fields_of_a_search(stored: World) -> None:
    fields, _ = stored.points("mcp_skills")["Calendar Management"]
    assert {name: value for name, value in fields.items() if name != "version"} == {
        "id": CALENDAR,
        "name": "Calendar Management",
        "description": "Tools for managing calendars, events, scheduling, and appointments",
        "tool_count": 4,
        "is_active": True,
    }
    indexed = stored.engine.get_collection(stored.collections["mcp_skills"]).payload_schema
    assert {name: str(item.data_type.value) for name, item in indexed.items()} == {
        "id": "keyword",
        "is_active": "bool",
    }


@pytest.mark.states("S3-023", "S3-024", "S3-025", "S3-026", "S3-027", "S3-075", "S3-076", "S3-077", "S3-079")
@pytest.mark.states("S3-191", "S3-192", "S3-193", "S3-194", "S3-195", "S3-196", "S3-197", "S3-201")
@pytest.mark.states("S3-106", "S3-107")
async def test_a_point_of_the_index_of_tools_carries_its_skills(stored: World) -> None:
    points = stored.points("mcp_unified_search")
    fields, _ = points["create_calendar_event"]
    ((number,),) = stored.rows("SELECT id FROM mcp.items WHERE name = 'create_calendar_event'")
    expected = {
        "db_id": number,
        "type": "tool",
        "name": "create_calendar_event",
        "description": "Create a calendar event or schedule a meeting at a given time",
        "skill_ids": [CALENDAR, MAIL],
        "primary_skill_id": CALENDAR,
        "is_active": True,
    }
    assert {name: fields[name] for name in expected} == expected
    assert {payload["type"] for payload, _ in points.values()} == {"tool", "prompt", "resource"}
    indexed = stored.engine.get_collection(stored.collections["mcp_unified_search"]).payload_schema
    kinds = {name: str(item.data_type.value) for name, item in indexed.items()}
    assert (kinds["type"], kinds["skill_ids"], kinds["is_active"]) == ("keyword", "keyword", "bool")


@pytest.mark.states("S3-022", "S3-029", "S3-072", "S3-073", "S3-074", "S3-083")
async def test_no_payload_has_arbitrary_fields(stored: World) -> None:
    for fields, _ in stored.points("mcp_skills").values():
        assert fields.keys() == {"id", "name", "description", "tool_count", "is_active", "version"}
    for fields, _ in stored.points("mcp_unified_search").values():
        assert "metadata" not in fields


@pytest.mark.states("S3-180", "S3-188")
def test_the_collections_are_called_as_in_the_design_unless_set_otherwise() -> None:
    default = Settings.model_fields
    assert default["qdrant_skills_alias"].default == "mcp_skills"
    assert default["qdrant_alias"].default == "mcp_unified_search"


@pytest.mark.states("S3-020", "S3-028", "S3-078", "S3-181", "S3-182", "S3-189", "S3-190")
async def test_vectors_are_compared_by_cosine_and_as_large_as_the_model_makes_them(stored: World) -> None:
    for collection in ("mcp_skills", "mcp_unified_search"):
        vectors: Any = stored.engine.get_collection(stored.collections[collection]).config.params.vectors
        assert (str(vectors["dense"].distance.value), vectors["dense"].size) == ("Cosine", 384)
        assert {vector.shape for _, vector in stored.points(collection).values()} == {(384,)}


@pytest.mark.states("S3-066", "S3-070", "S3-109", "S3-110", "S3-112", "S3-114", "S3-115", "S3-120", "S3-203")
async def test_a_skill_s_vector_is_the_normalised_mean_of_its_tools_by_confidence(stored: World) -> None:
    tools, skills = stored.points("mcp_unified_search"), stored.points("mcp_skills")
    weights = {
        "Calendar Management": {
            "create_calendar_event": 0.95,
            "send_meeting_invite": 0.7,
            "plan_day": 0.85,
            "calendar://today": 0.75,
        },
        "Communication": {"create_calendar_event": 0.6, "send_meeting_invite": 0.9},
    }
    for skill, of_tools in weights.items():
        mean = np.average([tools[name][1] for name in of_tools], axis=0, weights=np.array(list(of_tools.values())))
        result = skills[skill][1]
        assert np.linalg.norm(result) == pytest.approx(1.0, abs=1e-5)
        np.testing.assert_allclose(result, unit(mean), atol=1e-5)


@pytest.mark.states("S3-113", "S3-226", "S3-241")
async def test_a_tool_that_a_person_assigned_weighs_1_and_the_vector_moves_at_once(stored: World) -> None:
    number = (await stored.item("juggle_clubs"))["id"]
    value = {"skill_ids": [FILES], "reviewer": "ann"}
    await stored.service.ask("PUT", f"/api/v1/tools/{number}/skills", 200, value)
    await stored.work()
    tools, (fields, vector) = stored.points("mcp_unified_search"), stored.points("mcp_skills")["File Operations"]
    of_tools = {"read_file": 0.8, "write_file": 0.5, "juggle_clubs": 1.0}
    mean = np.average([tools[name][1] for name in of_tools], axis=0, weights=np.array(list(of_tools.values())))
    np.testing.assert_allclose(vector, unit(mean), atol=1e-5)
    assert fields["tool_count"] == 3
    assert tools["juggle_clubs"][0]["skill_ids"] == [FILES]


@pytest.mark.states("S3-111", "S3-116", "S3-121", "S3-222")
async def test_a_skill_without_tools_has_a_vector_of_its_own_text_before_the_first_search(stored: World) -> None:
    name = f"Beekeeping {uuid.uuid4().hex[:6]}"
    await stored.service.ask("POST", SKILLS, 201, {"id": "bees", "name": name, "description": "Bees and honey"})
    fields, vector = stored.points("mcp_skills")[name]
    assert fields["tool_count"] == 0
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert (await stored.skills("bees and honey", limit=1))[0]["id"] == "bees"
