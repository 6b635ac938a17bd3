"""S3: a search goes through skills to tools to schemas, and says so."""

import ast
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from tests.conftest import Installation
from tests.contracts.source.s3_builders import (
    CALENDAR,
    EXAMPLE,
    FILES,
    MAIL,
    SCHEMA,
    SKILLS,
    World,
    installed,
    world,
)
from tests.unit.tools.search_http.builders import by_vector, by_words, ids, names, scores
from toolscript.core.settings.service import Settings
from toolscript.server.stores import open_embedder

NOTHING_LIKE_IT = "photosynthesis of deep sea algae"


@pytest.fixture(scope="module")
def own(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installed(engines, migrated_database, model_folder, tmp_path_factory.mktemp("s3")) as fresh:
        yield fresh


@pytest.fixture(scope="module")
async def searched(own: Installation) -> AsyncIterator[World]:
    async with world(own) as opened:
        yield opened


async def cosines(searched: World, collection: str, query: str) -> dict[str, float]:
    """Return the cosine of the query with every point, by name."""
    async with open_embedder(searched.installation.settings) as embedder:
        requests = np.asarray(await embedder.embed_query(query))
    points = searched.points(collection)
    return {name: float(requests @ vector / np.linalg.norm(requests)) for name, (_, vector) in points.items()}


def lines(caplog: pytest.LogCaptureFixture, start: str) -> list[tuple[int, str]]:
    message = [(record.levelno, record.getMessage()) for record in caplog.records]
    return [(level, line) for level, line in message if line.startswith(start)]


@pytest.mark.states("S3-010", "S3-012", "S3-031", "S3-032", "S3-034", "S3-036", "S3-037", "S3-123", "S3-207")
@pytest.mark.states("S3-122", "S3-136", "S3-140", "S3-141", "S3-142", "S3-210")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
async def test_the_example_goes_through_calendar_management_to_its_tools(
    searched: World, search_type: str
) -> None:
    answer = await searched.search(EXAMPLE, search_type=search_type)
    assert answer["query"] == EXAMPLE
    assert ids(answer["matched_skills"]) == [CALENDAR, MAIL]
    used = answer["metadata"]["skill_ids_used"]
    assert used == ids(answer["matched_skills"])
    tools = [tool for tool in answer["tools"] if tool["type"] == "tool"]
    assert set(names(tools)) == {"create_calendar_event", "send_meeting_invite"}
    assert all(set(tool["skill_ids"]) & set(used) for tool in answer["tools"])


@pytest.mark.states("S3-032", "S3-033", "S3-127", "S3-128", "S3-131")
async def test_skills_by_vector_are_the_nearest_three_that_reach_the_threshold(searched: World) -> None:
    own = await cosines(searched, "mcp_skills", EXAMPLE)
    nearest = sorted(own.items(), key=lambda item: -item[1])
    answer = await searched.search(EXAMPLE, search_type="semantic", skill_threshold=0.0)
    assert [skill["name"] for skill in by_vector(answer)] == [name for name, cosine in nearest[:3] if cosine >= 0]
    assert scores(by_vector(answer)) == pytest.approx([item for _, item in nearest[:3] if item >= 0], abs=1e-4)
    default = by_vector(await searched.search(EXAMPLE, search_type="semantic"))
    assert [skill["name"] for skill in default] == [name for name, cosine in nearest[:3] if cosine >= 0.4]
    item = await searched.search(EXAMPLE, search_type="semantic", skill_threshold=0.0, skill_limit=1)
    assert ids(by_vector(item)) == [CALENDAR]


@pytest.mark.states("S3-032", "S3-033", "S3-128")
async def test_by_default_sparse_search_adds_skills_and_in_literal_mode_it_does_not(
    searched: World,
) -> None:
    request: dict[str, Any] = {"query": "mail the meeting to John", "skill_limit": 1, "skill_threshold": 0.1}
    default = await searched.search(**request)
    literal = await searched.search(**request, search_type="semantic")
    assert len(by_vector(default)) == 1
    assert by_words(default)
    assert (len(literal["matched_skills"]), by_words(literal)) == (1, [])


@pytest.mark.states("S3-033", "S3-128", "S3-208")
async def test_by_default_words_do_not_route_to_skills_that_are_far(searched: World) -> None:
    answer = await searched.search(EXAMPLE, skill_threshold=0.99)
    assert (answer["matched_skills"], answer["metadata"]["skill_ids_used"]) == ([], None)


@pytest.mark.states("S3-035", "S3-129", "S3-137")
async def test_tools_are_those_of_the_skills_whose_cosine_reaches_the_threshold(searched: World) -> None:
    own = await cosines(searched, "mcp_unified_search", EXAMPLE)
    request: dict[str, Any] = {"search_type": "semantic", "skill_threshold": 0.0, "skill_limit": 1}
    answer = await searched.search(EXAMPLE, limit=100, **request)
    used = set(answer["metadata"]["skill_ids_used"])
    points = searched.points("mcp_unified_search")
    routed = {name for name, (fields, _) in points.items() if used & set(fields["skill_ids"])}
    expected = sorted((-cosine, name) for name, cosine in own.items() if name in routed and cosine >= 0.3)
    assert names(answer["tools"]) == [name for _, name in expected]
    assert scores(answer["tools"]) == pytest.approx([-cosine for cosine, _ in expected], abs=1e-4)
    assert "create_calendar_event" in names(answer["tools"])
    prompts = await searched.search(EXAMPLE, item_type="prompt", **request)
    assert names(prompts["tools"]) == ["plan_day"]


@pytest.mark.states("S3-124", "S3-125")
@pytest.mark.parametrize("item_type", [None, "tool", "prompt", "resource"])
async def test_a_search_may_request_one_kind(searched: World, item_type: str | None) -> None:
    more = {} if item_type is None else {"item_type": item_type}
    answer = await searched.search("calendar events", tool_threshold=0.0, limit=100, **more)
    kinds = {tool["type"] for tool in answer["tools"]}
    assert kinds == ({"tool", "prompt", "resource"} if item_type is None else {item_type})


@pytest.mark.states("S3-039", "S3-126")
async def test_five_items_are_returned_by_default(searched: World) -> None:
    wide: dict[str, Any] = {"strategy": "direct", "tool_threshold": 0.0}
    assert len((await searched.search("calendar", **wide))["tools"]) == 5
    assert len((await searched.search("calendar", limit=7, **wide))["tools"]) == 7


@pytest.mark.states("S3-132", "S3-138")
async def test_in_literal_mode_the_log_has_skills_and_tools_with_scores(
    searched: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="toolscript"):
        answer = await searched.search(EXAMPLE, search_type="semantic", skill_threshold=0.0)
    ((level, skills),) = lines(caplog, "Stage 1 - Matched skills:")
    assert level == logging.INFO
    output = ast.literal_eval(skills.removeprefix("Stage 1 - Matched skills: "))
    assert [name for name, _ in output] == ids(answer["matched_skills"])
    assert [score for _, score in output] == pytest.approx(scores(answer["matched_skills"]), abs=1e-5)
    ((level, tools),) = lines(caplog, "Stage 2 - Matched tools:")
    assert level == logging.INFO
    output = ast.literal_eval(tools.removeprefix("Stage 2 - Matched tools: "))
    assert [name for name, _ in output] == names(answer["tools"]) != []
    assert [score for _, score in output] == pytest.approx(scores(answer["tools"]), abs=1e-5)


@pytest.mark.states("S3-132", "S3-138")
async def test_by_default_stages_are_logged_at_debug_only(
    searched: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="toolscript"):
        await searched.search(EXAMPLE)
    levels = [level for level, _ in lines(caplog, "Stage ")]
    assert levels == [logging.DEBUG, logging.DEBUG]


@pytest.mark.states("S3-133", "S3-134", "S3-135", "S3-208")
async def test_where_no_skill_matches_all_items_are_searched_and_the_log_warns(
    searched: World, caplog: pytest.LogCaptureFixture
) -> None:
    request: dict[str, Any] = {"search_type": "semantic", "skill_threshold": 1.0, "tool_threshold": 0.0}
    with caplog.at_level(logging.WARNING):
        answer = await searched.search(NOTHING_LIKE_IT, **request)
    direct = await searched.search(NOTHING_LIKE_IT, strategy="direct", **request)
    assert answer["metadata"]["skill_ids_used"] is None
    assert names(answer["tools"]) == names(direct["tools"]) != []
    message = "No skills matched, falling back to unfiltered search"
    assert [level for level, _ in lines(caplog, message)] == [logging.WARNING]


@pytest.mark.states("S3-038", "S3-082", "S3-139", "S3-146", "S3-148", "S3-149", "S3-209")
async def test_what_is_returned_has_its_schema_from_the_database_or_null(searched: World) -> None:
    answer = await searched.search(EXAMPLE)
    result = {tool["name"]: tool for tool in answer["tools"]}
    assert result["create_calendar_event"]["input_schema"] == SCHEMA
    assert result["send_meeting_invite"]["input_schema"] is None
    expected = {"id", "name", "description", "score", "skill_ids"}
    assert expected <= result["create_calendar_event"].keys()
    ((stored,),) = searched.rows("SELECT input_schema FROM mcp.items WHERE name = 'create_calendar_event'")
    assert stored == SCHEMA
    fields, _ = searched.points("mcp_unified_search")["create_calendar_event"]
    assert "input_schema" not in fields


@pytest.mark.states("S3-143", "S3-144", "S3-145")
async def test_the_counts_have_the_names_of_the_search_contract(searched: World) -> None:
    answer = await searched.search(EXAMPLE, limit=1)
    metadata = answer["metadata"]
    assert metadata["stage1_skill_count"] == len(answer["matched_skills"]) >= 1
    assert metadata["stage2_candidate_count"] >= 2
    assert metadata["final_count"] == 1
    assert metadata["skill_ids_used"] == ids(answer["matched_skills"])
    assert "search_metadata" not in answer
    assert not {"stage1_count", "stage2_count"} & metadata.keys()


@pytest.mark.states(
    "S3-040", "S3-043", "S3-044", "S3-045", "S3-046", "S3-047", "S3-050", "S3-051", "S3-052", "S3-211"
)
async def test_people_create_read_change_and_end_categories(searched: World) -> None:
    ask = searched.service.ask
    made = await ask("POST", SKILLS, 201, {"id": "chess", "name": "Chess", "description": "Plays chess"})
    assert (made["parent_domain"], made["keywords"], made["examples"], made["is_active"]) == (None, [], [], True)
    assert made["created_at"] == made["updated_at"]
    changed = await ask("PATCH", f"{SKILLS}/chess", 200, {"parent_domain": "games", "keywords": ["rook"]})
    assert (changed["parent_domain"], changed["keywords"]) == ("games", ["rook"])
    assert changed["updated_at"] > changed["created_at"] == made["created_at"]
    ended = await ask("PATCH", f"{SKILLS}/chess", 200, {"is_active": False})
    assert ended["is_active"] is False
    output = await ask("GET", f"{SKILLS}/chess")
    assert (output["id"], output["name"], output["description"]) == ("chess", "Chess", "Plays chess")
    matched = await searched.search("play chess with a rook", skill_threshold=0.0, skill_limit=32)
    assert "chess" not in ids(matched["matched_skills"])
    assert {MAIL, FILES} <= set(ids(matched["matched_skills"]))
