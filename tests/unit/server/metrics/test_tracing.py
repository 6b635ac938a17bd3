"""Spans at a real receiver, and behaviour without one."""

import asyncio
import logging
import socket
import time

import pytest
from opentelemetry.sdk.trace import TracerProvider

from tests.unit.server.metrics.otlp_receiver import otlp_receiver
from toolscript.core.errors import IndexUnavailable, SetupError
from toolscript.core.observability import tracing
from toolscript.core.observability.tracing import (
    MAX_FACT,
    address,
    open_tracing,
    spans_of,
    trace_headers,
    trace_ids,
)

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.requirement("DOC-007"), pytest.mark.slow]


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://collector/otlp/v1/traces", "https://collector/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_gets_the_default_one(given: str, used: str) -> None:
    assert address(given) == used


@pytest.mark.parametrize("given", ["collector:4318", "ftp://collector", "http://", "nonsense"])
def test_an_invalid_endpoint_is_refused(given: str) -> None:
    with pytest.raises(SetupError, match="TOOLSCRIPT_OTLP_ENDPOINT"):
        address(given)


async def test_a_collector_gets_the_spans_with_their_relations() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 1.0) as provider:
            spans = spans_of(provider)
            with spans.span("search.execute", tenant="ann"), spans.span("search.embed"):
                pass
        seen = {item.name: item for item in receiver.wait_for(2)}
    assert set(receiver.paths) == {"/v1/traces"}
    whole, embed = seen["search.execute"], seen["search.embed"]
    assert embed.parent_id == whole.span_id
    assert embed.trace_id == whole.trace_id
    assert whole.parent_id == ""
    assert whole.facts == {"tenant": "ann"}
    assert whole.service["service.name"] == "toolscript"


async def test_an_error_is_sent_by_its_class_alone() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 1.0) as provider:
            with pytest.raises(IndexUnavailable), spans_of(provider).span("search.retrieve"):
                raise IndexUnavailable("what somebody searched for")
        (span,) = receiver.wait_for(1)
    assert span.failed
    assert span.facts == {"error.type": "IndexUnavailable"}
    assert b"somebody" not in b"".join(receiver.raw)


async def test_a_fact_as_long_as_a_document_is_cut() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 1.0) as provider:
            with spans_of(provider).span("search.retrieve", note="x" * 10_000):
                pass
        (span,) = receiver.wait_for(1)
    assert span.facts == {"note": "x" * MAX_FACT}


async def test_with_share_zero_nothing_is_sent_and_the_work_is_done() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 0.0) as provider:
            done = 0
            for _ in range(100):
                with spans_of(provider).span("search.execute"):
                    done += 1
        assert done == 100
        assert receiver.paths == []


async def test_about_the_configured_share_is_traced() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 0.2) as provider:
            spans = spans_of(provider)
            for _ in range(2_000):
                with spans.span("search.execute"):
                    pass
        assert 300 < len(receiver.spans) < 500


@pytest.fixture
def down() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


async def _many(provider: TracerProvider, count: int) -> float:
    spans = spans_of(provider)
    began = time.perf_counter()
    for _ in range(count):
        with spans.span("search.execute", tenant="ann"):
            pass
    return time.perf_counter() - began


async def test_a_collector_that_is_down_delays_nothing_and_is_logged_once(
    down: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "SHUTDOWN_SECONDS", 0.5)
    exporter = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    monkeypatch.setattr(exporter, "filters", [])
    began = time.perf_counter()
    async with open_tracing(down, 1.0) as provider:
        took = await _many(provider, 3 * tracing.MAX_WAITING)
    # Waiting for the collector would take as long for every batch, some hundred times.
    assert took < 30.0
    assert time.perf_counter() - began < 60.0
    assert len([record for record in caplog.records if record.name == exporter.name]) <= 1


async def test_a_collector_that_hangs_delays_neither_work_nor_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SHUTDOWN_SECONDS", 0.3)
    with otlp_receiver() as receiver:
        receiver.goes_on.clear()
        async with open_tracing(receiver.url, 1.0) as provider:
            await _many(provider, 2 * tracing.BATCH)
            await asyncio.to_thread(receiver.wait_for_requests, 1)
            assert await _many(provider, 100) < 2.0
            began = time.perf_counter()
        assert time.perf_counter() - began < tracing.SEND_SECONDS


async def test_more_spans_than_can_wait_are_dropped_and_not_kept_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "SHUTDOWN_SECONDS", 60.0)
    with otlp_receiver() as receiver:
        receiver.goes_on.clear()
        async with open_tracing(receiver.url, 1.0) as provider:
            await _many(provider, tracing.BATCH)
            await asyncio.to_thread(receiver.wait_for_requests, 1)
            await _many(provider, 2 * tracing.MAX_WAITING)
            receiver.goes_on.set()
        assert len(receiver.spans) <= tracing.BATCH + tracing.MAX_WAITING
        assert len(receiver.spans) >= tracing.MAX_WAITING


async def test_logs_and_outgoing_requests_carry_the_current_span() -> None:
    with otlp_receiver() as receiver:
        async with open_tracing(receiver.url, 1.0) as provider:
            assert (trace_ids(), trace_headers()) == ({}, {})
            with spans_of(provider).span("search.execute"):
                ids, headers = trace_ids(), trace_headers()
        (span,) = receiver.wait_for(1)
    assert ids == {"trace_id": span.trace_id, "span_id": span.span_id}
    assert list(headers) == ["traceparent"]
    assert headers["traceparent"].startswith(f"00-{span.trace_id}-{span.span_id}-")
