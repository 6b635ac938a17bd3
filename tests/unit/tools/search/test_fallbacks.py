"""Every row of the table in core/retrieval/deadline.py, for every way in which a part can fail."""

import logging
from dataclasses import replace

import pytest

from tests.unit.tools.search.builders import (
    SCHEMA,
    FailingCatalog,
    FailingEmbedder,
    FailingIndex,
    Scene,
    TraitlessIndex,
)
from toolscript.core.errors import (
    CatalogRejected,
    CatalogUnavailable,
    EmbedderRejected,
    EmbedderUnavailable,
    IndexRejected,
    IndexUnavailable,
    ModelMismatch,
    Overloaded,
    SetupError,
    ToolscriptError,
)
from toolscript.core.items import Schemas
from toolscript.core.retrieval.deadline import Deadline
from toolscript.core.retrieval.query import SearchType
from toolscript.tools.model.query import SkillQuery, Strategy, ToolQuery

QUERY = ToolQuery("read a file", threshold=0.0, strategy=Strategy.DIRECT)
SHORT = 0.05
HANGS = pytest.param(None, id="hangs")


@pytest.mark.requirement("API-002", "EC-009")
@pytest.mark.parametrize(
    "failure", [EmbedderUnavailable("down"), EmbedderRejected("no"), SetupError("key"), HANGS]
)
async def test_without_an_embedding_the_word_arm_answers_alone(failure: ToolscriptError | None) -> None:
    answer = await Scene(embedder=FailingEmbedder(failure), deadline_seconds=SHORT).search(QUERY)
    assert answer.hits[0].name == "read_file"
    assert answer.degraded == ("embedding",)
    assert answer.search_type_used == "keyword"
    assert answer.hits[0].schemas == Schemas(input_schema=SCHEMA)


async def test_literal_mode_finds_nothing_without_a_vector() -> None:
    query = ToolQuery("read a file", threshold=0.0, search_type=SearchType.SEMANTIC)
    answer = await Scene(embedder=FailingEmbedder(EmbedderUnavailable("down"))).search(query)
    assert (answer.search_type_used, answer.degraded) == ("none", ("embedding",))
    assert answer.hits == ()
    assert answer.skill_ids_used is None


@pytest.mark.requirement("API-002", "EC-009")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), IndexRejected("no"), ModelMismatch("other"), HANGS])
async def test_without_the_index_there_are_no_results_and_the_answer_says_why(
    failure: ToolscriptError | None,
) -> None:
    answer = await Scene(index=FailingIndex(failure), deadline_seconds=SHORT).search(QUERY)
    assert (answer.hits, answer.candidate_count, answer.unskilled_count) == ((), 0, None)
    assert answer.degraded == ("index",)
    assert answer.search_type_used == "none"


@pytest.mark.requirement("API-002")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), IndexRejected("no")])
async def test_without_a_second_look_the_arms_alone_decide_and_the_answer_says_so(
    failure: ToolscriptError,
) -> None:
    answer = await Scene(index=TraitlessIndex(failure)).search(QUERY)
    assert answer.hits[0].name == "read_file"
    assert answer.degraded == ("index",)
    assert answer.search_type_used == "hybrid"


@pytest.mark.requirement("BR-004", "EC-009")
@pytest.mark.parametrize(
    "failure", [CatalogUnavailable("down"), CatalogRejected("no"), SetupError("migrate"), HANGS]
)
async def test_without_the_catalog_results_come_without_schemas(failure: ToolscriptError | None) -> None:
    answer = await Scene(catalog=FailingCatalog(failure), deadline_seconds=SHORT).search(QUERY)
    assert answer.hits[0].name == "read_file"
    assert {hit.schemas for hit in answer.hits} == {Schemas()}
    assert answer.degraded == ("schemas",)


@pytest.mark.requirement("BR-007")
async def test_every_part_that_failed_is_named_in_order() -> None:
    broken = Scene(embedder=FailingEmbedder(EmbedderUnavailable("a")), index=FailingIndex(IndexUnavailable("b")))
    assert (await broken.search(QUERY)).degraded == ("embedding", "index")


async def test_the_reason_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await Scene(index=FailingIndex(IndexUnavailable("connection refused"))).search(QUERY)
    logged = [(line.levelname, line.__dict__["part"], line.__dict__["reason"]) for line in caplog.records]
    assert logged == [("WARNING", "index", "connection refused")]


@pytest.mark.states("S0-130")
@pytest.mark.requirement("API-004", "OP-006")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), HANGS])
async def test_while_more_comes_than_fits_nothing_is_not_an_answer(failure: ToolscriptError | None) -> None:
    scene = Scene(index=FailingIndex(failure), deadline_seconds=SHORT, is_overloaded=lambda _: True)
    with pytest.raises(Overloaded) as refused:
        await scene.search(QUERY)
    assert refused.value.details == {"retry_after_seconds": 1}
    with pytest.raises(Overloaded):
        await replace(scene, skills=scene.index).tools.skills(SkillQuery("read a file"))


@pytest.mark.requirement("API-004")
async def test_while_more_comes_than_fits_what_was_found_is_an_answer_and_so_is_a_search_without_a_hit() -> None:
    without_vectors = FailingEmbedder(EmbedderUnavailable("down"))
    found = await Scene(embedder=without_vectors, is_overloaded=lambda _: True).search(QUERY)
    assert (found.hits[0].name, found.degraded) == ("read_file", ("embedding",))
    whole = await Scene(is_overloaded=lambda _: True).search(ToolQuery("read a file", threshold=1.0))
    assert (whole.hits, whole.degraded) == ((), ())


@pytest.mark.parametrize("fault", [KeyError("ours"), ValueError("ours"), ToolscriptError("unknown")])
async def test_a_fault_of_our_own_is_not_hidden(fault: Exception) -> None:
    with pytest.raises(type(fault)):
        await Scene(index=FailingIndex(fault)).search(QUERY)


async def test_a_deadline_that_has_passed_leaves_nothing() -> None:
    deadline = Deadline(-1.0)
    assert deadline.left == 0.0
    assert 0.0 < Deadline(60.0).left <= 60.0
