"""Searches for tools and of the library, in a trace: a span for the whole, and one for each stage."""

import pytest

from tests.unit.server.composition.observed_products import served, some_products
from tests.unit.server.metrics.otlp_receiver import OtlpReceiver, Received, otlp_receiver

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.slow]

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


def within(receiver: OtlpReceiver, search: Received) -> set[str]:
    return {one.name for one in receiver.spans if one.parent_id == search.span_id}


def one(receiver: OtlpReceiver, name: str) -> Received:
    (result,) = [span for span in receiver.spans if span.name == name]
    return result


@pytest.mark.parametrize("metrics", [False, True])
async def test_a_search_for_tools_is_a_span_with_a_child_for_each_stage(metrics: bool) -> None:
    with otlp_receiver() as receiver:
        async with served(await some_products(), {"otlp_endpoint": receiver.url, "metrics": metrics}) as there:
            there.http.headers.update(SAMPLED)
            assert (await there.find_tools()).json()["tools"]
    search, request = one(receiver, "search.execute"), one(receiver, "POST /api/v1/search")
    assert search.trace_id == TRACE
    assert search.parent_id == request.span_id
    assert search.facts == {"product": "tools", "search_type": "hybrid", "strategy": "hierarchical"}
    stages = ("spelling", "embed", "skills", "retrieve", "removed", "rank", "enrich")
    assert within(receiver, search) == {f"search.{stage}" for stage in stages}


async def test_a_search_of_the_library_is_a_span_with_a_child_for_each_stage() -> None:
    with otlp_receiver() as receiver:
        async with served(await some_products(), {"otlp_endpoint": receiver.url}) as there:
            there.http.headers.update(SAMPLED)
            assert (await there.ask()).json()["results"]
    search, request = one(receiver, "search.execute"), one(receiver, "POST /search_knowledge")
    assert search.parent_id == request.span_id
    assert search.facts == {"product": "knowledge", "search_type": "hybrid"}
    stages = {"search.embed", "search.statistics", "search.retrieve", "search.enrich"}
    assert within(receiver, search) == stages


async def test_nothing_that_is_searched_or_found_is_in_a_trace() -> None:
    with otlp_receiver() as receiver:
        async with served(await some_products(), {"otlp_endpoint": receiver.url}) as there:
            await there.find_tools("read the undisclosed file")
            await there.ask("where is the undisclosed hive")
            await there.mcp.answer("search_tools", {"query": "undisclosed"})
        sent = b"".join(receiver.raw)
    assert b"search.execute" in sent
    for private in (b"undisclosed", b"hive", b"read_file"):
        assert private not in sent
