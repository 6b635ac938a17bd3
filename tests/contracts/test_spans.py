"""Contract of Spans."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.doubles import MemorySpans
from toolscript.core.errors import IndexUnavailable
from toolscript.core.observability.tracing import spans_of, tracer_provider
from toolscript.core.retrieval.ports import Spans
from toolscript.core.retrieval.timings import NoSpans
from toolscript.server.measured import MeasuredSpans
from toolscript.server.metrics import Metrics

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.requirement("DOC-003")]

STAGES = ("search.embed", "search.statistics", "search.retrieve", "search.fuse", "search.rerank", "search.enrich")


@dataclass(frozen=True)
class Seen:
    name: str
    within: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Watched:
    spans: Spans
    seen: Callable[[], Sequence[Seen]]


@pytest.fixture(params=["memory", "opentelemetry", "measured"])
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    if request.param == "opentelemetry":
        exporter = InMemorySpanExporter()
        provider = tracer_provider(exporter, 1.0)

        def exported() -> Sequence[Seen]:
            provider.force_flush()
            return _exported(exporter)

        yield Watched(spans_of(provider), exported)
        provider.shutdown()
        return
    memory = MemorySpans()
    spans = memory if request.param == "memory" else MeasuredSpans(memory, Metrics(), "documents")
    yield Watched(spans, lambda: _remembered(memory))


def _exported(exporter: InMemorySpanExporter) -> list[Seen]:
    spans = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans if span.context}
    seen = []
    for span in spans:
        facts = {name: value for name, value in (span.attributes or {}).items() if name != "error.type"}
        within = names[span.parent.span_id] if span.parent else ""
        failed = span.status.description or "" if not span.status.is_unset else ""
        assert failed == (span.attributes or {}).get("error.type", "")
        assert not span.events, "an event would quote the error"
        seen.append(Seen(span.name, within, facts, failed))
    return seen


def _remembered(memory: MemorySpans) -> list[Seen]:
    assert all(span.ended for span in memory.spans)
    return [
        Seen(span.name, span.within.name if span.within else "", dict(span.facts), span.error)
        for span in memory.spans
    ]


def by_name(seen: Sequence[Seen]) -> dict[str, Seen]:
    return {item.name: item for item in seen}


@pytest.mark.states("S2-072")
async def test_each_stage_is_a_child_of_the_search(watched: Watched) -> None:
    with watched.spans.span("search.execute", tenant="ann", search_type="hybrid"):
        for stage in STAGES:
            with watched.spans.span(stage):
                await asyncio.sleep(0)
    seen = by_name(watched.seen())
    assert seen.pop("search.execute") == Seen("search.execute", facts={"tenant": "ann", "search_type": "hybrid"})
    assert seen == {stage: Seen(stage, "search.execute") for stage in STAGES}


async def test_facts_are_kept_as_they_are(watched: Watched) -> None:
    facts: dict[str, str | int | float | bool] = {"tenant": "ann", "candidates": 3, "share": 0.5, "cached": True}
    with watched.spans.span("search.retrieve", **facts):
        pass
    assert watched.seen() == [Seen("search.retrieve", facts=facts)]


async def test_concurrent_stages_have_one_parent(watched: Watched) -> None:
    async def stage(name: str) -> None:
        with watched.spans.span(name):
            await asyncio.sleep(0)

    with watched.spans.span("search.execute"):
        await asyncio.gather(stage("search.embed"), stage("search.statistics"))
    seen = by_name(watched.seen())
    assert seen["search.embed"].within == seen["search.statistics"].within == "search.execute"


async def test_two_searches_at_once_keep_their_own_children(watched: Watched) -> None:
    both = asyncio.Barrier(2)

    async def search(name: str) -> None:
        with watched.spans.span(f"search.{name}"):
            await both.wait()
            with watched.spans.span(f"search.stage-of-{name}"):
                await both.wait()

    await asyncio.gather(search("one"), search("two"))
    seen = by_name(watched.seen())
    assert {item.within for item in (seen["search.one"], seen["search.two"])} == {""}
    assert seen["search.stage-of-one"].within == "search.one"
    assert seen["search.stage-of-two"].within == "search.two"


async def test_an_error_passes_and_records_its_class_and_not_its_message(watched: Watched) -> None:
    error = IndexUnavailable("nobody may read this")
    with (
        pytest.raises(IndexUnavailable) as raised,
        watched.spans.span("search.execute"),
        watched.spans.span("search.retrieve"),
    ):
        raise error
    assert raised.value is error
    seen = watched.seen()
    assert {item.error for item in seen} == {"IndexUnavailable"}
    assert "nobody may read this" not in repr(seen)


async def test_a_cancelled_span_is_marked_too(watched: Watched) -> None:
    begun = asyncio.Event()

    async def search() -> None:
        with watched.spans.span("search.execute"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(search())
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert watched.seen() == [Seen("search.execute", error="CancelledError")]


async def test_after_a_span_the_next_one_is_not_within_it(watched: Watched) -> None:
    with watched.spans.span("search.one"):
        pass
    with watched.spans.span("search.two"):
        pass
    assert [item.within for item in watched.seen()] == ["", ""]


def test_without_tracing_work_is_done_and_errors_pass() -> None:
    spans: Spans = NoSpans()
    done = []
    with spans.span("search.execute", tenant="ann"), spans.span("search.embed"):
        done.append(1)
    with pytest.raises(IndexUnavailable), spans.span("search.execute"), spans.span("search.retrieve"):
        raise IndexUnavailable("down")
    assert done == [1]
