"""Tool search on doubles, from a query to an answer."""

import pytest

from tests.search.scenes import ITEMS, SCHEMA, Scene, WatchedCatalog, WatchedIndex
from toolscript.model.items import ItemKind, Schemas
from toolscript.model.models import IndexCard
from toolscript.model.queries import SearchType, ToolQuery
from toolscript.search.tools import CANDIDATES_PER_ARM

ALL_ACTIVE = {item.name for item in ITEMS} - {"read_file_old"}


def query(text: str = "read a file", **more: object) -> ToolQuery:
    return ToolQuery(text, **{"threshold": 0.0, "limit": 100} | more)  # type: ignore[arg-type]


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("search_type", [SearchType.HYBRID, SearchType.SEMANTIC])
async def test_a_query_is_embedded_exactly_once(search_type: SearchType) -> None:
    scene = Scene()
    await scene.search(query(search_type=search_type))
    assert scene.embedder.queries_embedded == 1


async def test_a_keyword_search_embeds_nothing() -> None:
    scene = Scene()
    answer = await scene.search(query(search_type=SearchType.KEYWORD))
    assert scene.embedder.queries_embedded == 0
    assert answer.search_type_used == "keyword"
    assert answer.degraded == ()


@pytest.mark.requirement("BR-001")
async def test_the_best_comes_first() -> None:
    answer = await Scene().search(query())
    assert answer.hits[0].name == "read_file"
    order = [(-hit.score, hit.id) for hit in answer.hits]
    assert order == sorted(order)


@pytest.mark.parametrize("search_type", list(SearchType))
async def test_an_answer_says_which_arms_retrieved(search_type: SearchType) -> None:
    scene = Scene()
    answer = await scene.search(query(search_type=search_type))
    assert answer.search_type_used == search_type.value
    assert isinstance(scene.index, WatchedIndex)
    asked = scene.index.asks[0]
    assert (asked.vector is not None) == (search_type is not SearchType.KEYWORD)
    assert (asked.terms is not None) == (search_type is not SearchType.SEMANTIC)
    assert asked.limit == CANDIDATES_PER_ARM


@pytest.mark.requirement("BR-003")
async def test_inactive_items_are_never_found() -> None:
    answer = await Scene().search(query("read_file_old"))
    assert {hit.name for hit in answer.hits} <= ALL_ACTIVE


@pytest.mark.requirement("BR-003", "BR-009")
async def test_only_what_reaches_the_threshold_is_returned_and_counted() -> None:
    everything = await Scene().search(query())
    threshold = everything.hits[1].score
    answer = await Scene().search(query(threshold=threshold))
    assert answer.hits == everything.hits[:2]
    assert answer.candidate_count == 2
    assert (await Scene().search(query("unheard-of gibberish", threshold=0.99))).hits == ()


@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("text", ["read a file", "send mail", "zzz qqq", "file"])
async def test_scores_are_between_zero_and_one(text: str) -> None:
    answer = await Scene().search(query(text))
    assert all(0.0 <= hit.score <= 1.0 for hit in answer.hits)


@pytest.mark.requirement("BR-003", "BR-007")
async def test_the_limit_cuts_what_is_returned_and_not_what_is_counted() -> None:
    everything = await Scene().search(query())
    answer = await Scene().search(query(limit=1))
    assert answer.hits == everything.hits[:1]
    assert answer.candidate_count == everything.candidate_count > 1


@pytest.mark.requirement("BR-005")
@pytest.mark.parametrize("kind", list(ItemKind))
async def test_a_kind_finds_only_that_kind(kind: ItemKind) -> None:
    answer = await Scene().search(query("file", kind=kind, search_type=SearchType.SEMANTIC))
    expected = {item.name for item in ITEMS if item.kind is kind} & ALL_ACTIVE
    assert {hit.name for hit in answer.hits} <= expected
    assert {hit.kind for hit in answer.hits} == {kind}


@pytest.mark.requirement("BR-003")
async def test_named_skills_find_items_that_have_any_of_them() -> None:
    answer = await Scene().search(query("file letter", skill_ids=("reading", "mail")))
    assert {hit.name for hit in answer.hits} == {"read_file", "send_mail"}
    by_name = {hit.name: hit for hit in answer.hits}
    assert by_name["read_file"].skill_ids == ("files", "reading")
    assert by_name["read_file"].primary_skill_id == "files"


@pytest.mark.requirement("BR-004")
async def test_schemas_are_read_once_and_only_for_what_is_returned() -> None:
    scene = Scene()
    answer = await scene.search(query(limit=2))
    assert isinstance(scene.catalog, WatchedCatalog)
    assert scene.catalog.schema_reads == [[hit.id for hit in answer.hits]]
    assert answer.hits[0].schemas == Schemas(input_schema=SCHEMA)


@pytest.mark.requirement("BR-004")
async def test_an_item_without_schemas_has_none() -> None:
    answer = await Scene().search(query("summary", kind=ItemKind.PROMPT))
    assert answer.hits[0].schemas == Schemas()


@pytest.mark.parametrize("asked", [query(include_schemas=False), query("unheard-of", threshold=0.99)])
async def test_schemas_that_nobody_needs_are_not_read(asked: ToolQuery) -> None:
    scene = Scene()
    answer = await scene.search(asked)
    assert isinstance(scene.catalog, WatchedCatalog)
    assert scene.catalog.schema_reads == []
    assert answer.timings.total > 0


@pytest.mark.requirement("BR-007", "BR-008")
async def test_an_answer_tells_its_query_its_index_and_how_long_each_stage_took() -> None:
    scene = Scene()
    answer = await scene.search(query("read"))
    assert (answer.query, answer.index) == ("read", IndexCard(scene.embedder.model).fingerprint)
    spent = answer.timings
    assert spent.skill_search == 0.0
    assert min(spent.query_embedding, spent.tool_search, spent.schema_load) > 0
    assert spent.total >= spent.query_embedding + spent.tool_search + spent.schema_load


@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize("text", ["???", "'; DROP TABLE items; --", "<script>alert(1)</script>", "\0", "日本語"])
async def test_a_query_of_signs_is_answered_like_any_other(text: str) -> None:
    answer = await Scene().search(query(text))
    assert answer.degraded == ()
    assert answer.search_type_used == "hybrid"
