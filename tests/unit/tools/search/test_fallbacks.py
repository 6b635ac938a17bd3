"""Every row of the table in core/retrieval/deadline.py, for every way in which a part can fail."""

import logging
from dataclasses import replace

import pytest

from tests.unit.tools.search.builders import (
    SCHEMA,
    FailingCatalog,
    FailingEmbedder,
    FailingIndex,
    PayloadlessIndex,
    Scene,
)
from toolscript.core.errors import (
    CatalogRejected,
    CatalogUnavailable,
    EmbedderRejected,
    EmbedderUnavailable,
    IndexRejected,
    IndexUnavailable,
    ModelMismatch,
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
async def test_without_an_embedding_sparse_retrieval_answers_alone(failure: ToolscriptError | None) -> None:
    answer = await Scene(embedder=FailingEmbedder(failure), deadline_seconds=SHORT).search(QUERY)
    assert answer.hits[0].name == "read_file"
    assert answer.degraded == ("embedding",)
    assert answer.search_type_used == "keyword"
    assert answer.hits[0].schemas == Schemas(input_schema=SCHEMA)


async def test_literal_mode_is_an_error_without_a_vector() -> None:
    query = ToolQuery("read a file", threshold=0.0, search_type=SearchType.SEMANTIC)
    with pytest.raises(EmbedderUnavailable, match="nothing could be searched"):
        await Scene(embedder=FailingEmbedder(EmbedderUnavailable("down"))).search(query)


@pytest.mark.requirement("API-002", "EC-009")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), IndexRejected("no"), ModelMismatch("other"), HANGS])
async def test_without_the_index_a_search_is_an_error_and_no_empty_list(failure: ToolscriptError | None) -> None:
    scene = Scene(index=FailingIndex(failure), deadline_seconds=SHORT)
    # An index that waiting does not bring back has a hint of its own.
    kind = ModelMismatch if isinstance(failure, ModelMismatch) else IndexUnavailable
    with pytest.raises(kind):
        await scene.search(QUERY)
    with pytest.raises(kind):
        await replace(scene, skills=scene.index).tools.skills(SkillQuery("read a file"))


@pytest.mark.requirement("API-002")
@pytest.mark.parametrize("failure", [IndexUnavailable("down"), IndexRejected("no")])
async def test_without_payloads_the_fused_order_is_returned_and_flagged(
    failure: ToolscriptError,
) -> None:
    answer = await Scene(index=PayloadlessIndex(failure)).search(QUERY)
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
    assert answer.degraded == ("catalog", "schemas")


@pytest.mark.requirement("BR-007")
async def test_failed_parts_are_named_in_order() -> None:
    broken = Scene(
        embedder=FailingEmbedder(EmbedderUnavailable("a")), catalog=FailingCatalog(CatalogUnavailable("b"))
    )
    assert (await broken.search(QUERY)).degraded == ("embedding", "catalog", "schemas")


async def test_the_reason_of_a_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(IndexUnavailable):
        await Scene(index=FailingIndex(IndexUnavailable("connection refused"))).search(QUERY)
    logged = [(line.levelname, line.__dict__["part"], line.__dict__["reason"]) for line in caplog.records]
    assert logged == [("WARNING", "index", "connection refused")]


@pytest.mark.states("S0-130", "S0-132")
@pytest.mark.requirement("API-004")
async def test_words_alone_that_find_nothing_are_an_error_and_a_whole_search_that_finds_nothing_is_none() -> None:
    without_vectors = FailingEmbedder(EmbedderUnavailable("down"))
    with pytest.raises(EmbedderUnavailable):
        await Scene(embedder=without_vectors).search(ToolQuery("zebra", threshold=0.0))
    whole = await Scene().search(ToolQuery("read a file", threshold=1.0))
    assert (whole.hits, whole.degraded) == ((), ())


@pytest.mark.parametrize("fault", [KeyError("ours"), ValueError("ours"), ToolscriptError("unknown")])
async def test_a_programming_error_is_not_hidden(fault: Exception) -> None:
    with pytest.raises(type(fault)):
        await Scene(index=FailingIndex(fault)).search(QUERY)


async def test_a_passed_deadline_leaves_no_time() -> None:
    deadline = Deadline(-1.0)
    assert deadline.left == 0.0
    assert 0.0 < Deadline(60.0).left <= 60.0


async def test_without_the_catalog_schemas_of_an_earlier_search_are_returned() -> None:
    scene = Scene()
    await scene.fill()
    tools = scene.tools
    first = await tools.search(ToolQuery("file", limit=2, threshold=0.0))
    scene.catalog.schemas = FailingCatalog(CatalogUnavailable("gone")).schemas  # type: ignore[method-assign]
    again, more = (
        await tools.search(ToolQuery("file", limit=2, threshold=0.0)),
        await tools.search(ToolQuery("file", limit=3, threshold=0.0)),
    )
    assert [hit.schemas for hit in again.hits] == [hit.schemas for hit in first.hits]
    assert (again.degraded, more.degraded) == ((), ("schemas",))
    assert [hit.schemas for hit in more.hits[:2]] == [hit.schemas for hit in first.hits]
