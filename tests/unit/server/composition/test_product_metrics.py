"""Metrics of searches of tools and the library, and of MCP."""

from typing import Any

import httpx2
import pytest

from tests.unit.server.composition.observed_products import Served, served, some_products
from tests.unit.server.metrics.metrics_page import shown, value
from tests.unit.tools.search.builders import FailingCatalog, FailingEmbedder, FailingIndex, Scene
from toolscript.core.errors import CatalogUnavailable, EmbedderUnavailable, IndexUnavailable, LibraryUnavailable

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.slow]

FIGURES = {"metrics": True}
STAGES = {
    "tools": ("embed", "skills", "retrieve", "rank", "enrich"),
    "knowledge": ("embed", "statistics", "retrieve", "enrich"),
}


async def counted(scene: Scene, **asked: object) -> tuple[httpx2.Response, bytes]:
    async with served(await some_products(scene), FIGURES) as there:
        answer = await there.find_tools(**asked)  # type: ignore[arg-type]
        return answer, there.page


async def test_a_search_for_tools_is_counted_and_timed_with_its_stages() -> None:
    answer, page = await counted(Scene())
    assert answer.json()["tools"]
    assert value(page, "toolscript_searches_total", product="tools", outcome="ok") == 1
    assert value(page, "toolscript_searches_total") == 1
    assert value(page, "toolscript_search_seconds_count", product="tools") == 1
    for stage in STAGES["tools"]:
        assert value(page, "toolscript_search_stage_seconds_count", product="tools", stage=stage) >= 1, stage
    assert value(page, "toolscript_engine_seconds_count", product="tools", operation="search", outcome="ok") >= 1


async def test_a_search_that_finds_nothing_is_counted_as_empty() -> None:
    answer, page = await counted(Scene(), query="read a file", tool_threshold=1.0)
    assert answer.json()["tools"] == []
    assert value(page, "toolscript_searches_total", product="tools", outcome="empty") == 1


@pytest.mark.parametrize(
    ("scene", "parts"),
    [
        (Scene(catalog=FailingCatalog(CatalogUnavailable("no connection"))), ("catalog", "schemas")),
        (Scene(embedder=FailingEmbedder(EmbedderUnavailable("away"))), ("embedding",)),
    ],
)
async def test_a_search_for_tools_without_a_part_is_counted_by_that_part(
    scene: Scene, parts: tuple[str, ...]
) -> None:
    answer, page = await counted(scene)
    assert answer.status_code == 200
    assert value(page, "toolscript_searches_total", product="tools", outcome="degraded") == 1
    for part in parts:
        assert value(page, "toolscript_searches_degraded_total", product="tools", part=part) == 1
    assert value(page, "toolscript_searches_degraded_total") == len(parts)


async def test_an_index_that_fails_is_counted_by_its_product() -> None:
    _, page = await counted(Scene(index=FailingIndex(IndexUnavailable("down"))))
    assert value(page, "toolscript_engine_seconds_count", product="tools", outcome="error") >= 1
    outcomes = [
        value(page, "toolscript_searches_total", product="tools", outcome=item) for item in ("degraded", "error")
    ]
    assert sum(outcomes) == 1


async def test_a_refused_search_is_not_a_server_error() -> None:
    answer, page = await counted(Scene(), query="   ")
    assert answer.status_code in {400, 422}
    assert value(page, "toolscript_searches_total", outcome="error") == 0


async def test_a_search_of_the_library_is_counted_and_timed_with_its_stages_and_reads() -> None:
    async with served(await some_products(), FIGURES) as there:
        assert (await there.ask()).json()["results"]
        page = there.page
    assert value(page, "toolscript_searches_total", product="knowledge", outcome="ok") == 1
    assert value(page, "toolscript_search_seconds_count", product="knowledge") == 1
    for stage in STAGES["knowledge"]:
        assert value(page, "toolscript_search_stage_seconds_count", product="knowledge", stage=stage) == 1, stage
    assert value(page, "toolscript_library_seconds_count", operation="chunks", outcome="ok") == 1
    assert value(page, "toolscript_engine_seconds_count", product="knowledge", operation="search") == 2


class Away:
    """A library that is unavailable."""

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: object) -> None:
            raise LibraryUnavailable("down")

        return fail


async def test_a_library_that_does_not_answer_is_counted_as_an_error_at_its_stage() -> None:
    products = await some_products()
    products.library = Away()
    async with served(products, FIGURES) as there:
        assert (await there.ask()).status_code == 503
        page = there.page
    assert value(page, "toolscript_searches_total", product="knowledge", outcome="error") == 1
    assert value(page, "toolscript_library_seconds_count", outcome="error") == 1
    failed = {"product": "knowledge", "stage": "enrich", "error": "LibraryUnavailable"}
    assert value(page, "toolscript_search_stage_failures_total", **failed) == 1


async def test_mcp_is_a_route_and_its_requests_are_counted_by_method_and_tool() -> None:
    async with served(await some_products(), FIGURES) as there:
        await there.mcp.names()
        await there.mcp.answer("search_tools", {"query": "read a file"})
        await there.mcp.answer("search_knowledge", {"query": "hive"})
        await there.mcp.call("search_tools", {"query": 7})
        await there.mcp.call("no_such_tool")
        await there.mcp.post("made/up")
        page = there.page
    request = {
        (labels["method"], labels["tool"], labels["outcome"]): result
        for (name, received), result in shown(page).items()
        if name == "toolscript_mcp_requests_total" and result and (labels := dict(received))
    }
    assert request.pop(("tools/call", "search_tools", "ok")) == 1
    assert request.pop(("tools/call", "search_knowledge", "ok")) == 1
    assert request.pop(("tools/call", "search_tools", "error")) == 1
    assert request.pop(("tools/call", "other", "refused")) == 1
    assert request.pop(("tools/list", "none", "ok")) == 1
    assert [(method, tool) for method, tool, _ in request] == [("other", "none")]
    assert value(page, "toolscript_mcp_request_seconds_count", tool="search_tools") == 2
    assert value(page, "toolscript_http_request_seconds_count", route="/mcp") == 6
    assert value(page, "toolscript_http_request_seconds_count", route="unmatched") == 0
    assert value(page, "toolscript_searches_total", product="tools", outcome="ok") == 1
    assert value(page, "toolscript_searches_total", product="knowledge", outcome="ok") == 1


async def test_requests_above_the_rate_limit_are_counted_by_product() -> None:
    products = await some_products()
    products.per_minute = 1
    async with served(products, FIGURES) as there:
        statuses = [(await there.ask()).status_code for _ in range(3)]
        assert statuses.count(429) == 2
        await there.mcp.post("tools/list")
        page = there.page
    assert value(page, "toolscript_refusals_total", product="knowledge", reason="rate_limit") == 2
    assert value(page, "toolscript_refusals_total", product="mcp", reason="rate_limit") == 1
    assert value(page, "toolscript_mcp_requests_total", outcome="refused") == 1


async def test_the_version_and_the_memory_of_the_process_are_shown() -> None:
    async with served(await some_products(), FIGURES) as there:
        page = there.page
    assert value(page, "toolscript_build_info") == 1
    assert value(page, "process_resident_memory_bytes") > 10_000_000


async def test_no_search_and_no_call_adds_series() -> None:
    async with served(await some_products(), FIGURES) as there:

        async def use(name: str) -> None:
            await there.find_tools(f"read {name}")
            await there.ask(name)
            await there.mcp.call(name)
            await there.mcp.call("search_tools", {"query": name})
            await there.mcp.post(f"made/{name}")

        await use("first")
        before = set(shown(there.page))
        for number in range(20):
            await use(f"one-{number}")
        assert set(shown(there.page)) == before


async def test_without_metrics_nothing_is_wrapped() -> None:
    async with served(await some_products(), {}) as there:
        assert isinstance(there, Served)
        assert there.metrics is None
        assert (await there.find_tools()).json()["tools"]
        assert (await there.ask()).json()["results"]
