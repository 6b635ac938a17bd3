"""Tracing with OpenTelemetry: spans in batches, and the trace context of requests."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import Token
from types import TracebackType
from urllib.parse import urlsplit

from opentelemetry import context as ambient
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span as WritableSpan
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolscript.core.errors import SetupError
from toolscript.core.version import __version__

MAX_WAITING = 4_096
BATCH = 512
SEND_EVERY_SECONDS = 1.0
SEND_SECONDS = 5.0
SHUTDOWN_SECONDS = 3.0
WARN_EVERY_SECONDS = 60.0
# Longer than any name in use, too short for a document.
MAX_FACT = 256
DEFAULT_PATH = "/v1/traces"
# The HTTP instrumentation records the URL query, which contains search queries.
HIDDEN = "url.query"
# Paths contain ids of documents; the route is a separate attribute.
PATH = "url.path"
REDACTED = "REDACTED"

# Without baggage: that of a client must not reach other services.
_TRACE = TraceContextTextMapPropagator()


class TracedSpans:
    """Opens spans. A failed span has the error's class, but not its message."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:
        return _Running(self._tracer, name, facts)


class _Running(AbstractContextManager[None]):
    __slots__ = ("_facts", "_name", "_span", "_token", "_tracer")

    def __init__(self, tracer: Tracer, name: str, facts: Mapping[str, str | int | float | bool]) -> None:
        self._tracer, self._name, self._facts = tracer, name, facts
        self._span: Span
        self._token: Token[Context]

    def __enter__(self) -> None:
        self._span = self._tracer.start_span(self._name, attributes=self._facts)
        self._token = ambient.attach(trace.set_span_in_context(self._span))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        ambient.detach(self._token)
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(Status(StatusCode.ERROR, kind.__name__))
        self._span.end()


class _Redacting(SpanProcessor):
    def on_start(self, span: WritableSpan, parent_context: Context | None = None) -> None:  # noqa: ARG002
        attributes = span.attributes or {}
        if HIDDEN in attributes:
            span.set_attribute(HIDDEN, REDACTED)
        if PATH in attributes:
            span.set_attribute(PATH, _redacted_path(str(attributes[PATH])))


def _redacted_path(path: str) -> str:
    first, *more = path.lstrip("/").split("/", 1)
    return f"/{first}/{REDACTED}" if more else path


def tracer_provider(exporter: SpanExporter, share: float) -> TracerProvider:
    """Create a provider. A client's trace context decides the sampling; other requests are sampled by `share`."""
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(share)),
        resource=Resource.create(
            {"service.name": "toolscript", "service.version": __version__, "process.pid": os.getpid()}
        ),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_span_attribute_length=MAX_FACT, max_span_attributes=32),
    )
    provider.add_span_processor(_Redacting())
    provider.add_span_processor(
        BatchSpanProcessor(
            exporter,
            max_queue_size=MAX_WAITING,
            schedule_delay_millis=SEND_EVERY_SECONDS * 1_000,
            max_export_batch_size=BATCH,
        )
    )
    return provider


@asynccontextmanager
async def open_tracing(endpoint: str, share: float) -> AsyncIterator[TracerProvider]:
    """Open tracing; on exit, remaining spans are sent within a short limit."""
    _limit_log_rate("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    provider = tracer_provider(OTLPSpanExporter(address(endpoint), timeout=SEND_SECONDS), share)
    try:
        yield provider
    finally:
        await _shut_down(provider)


def spans_of(provider: TracerProvider) -> TracedSpans:
    return TracedSpans(provider.get_tracer("toolscript", __version__))


def address(endpoint: str) -> str:
    """Return the URL for traces; an endpoint without a path gets the default path of OTLP."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SetupError(
            "TOOLSCRIPT_OTLP_ENDPOINT is not a URL",
            hint="write it like http://collector:4318, the port for OTLP over HTTP",
        )
    return endpoint.rstrip("/") + DEFAULT_PATH if parts.path in {"", "/"} else endpoint


async def _shut_down(provider: TracerProvider) -> None:
    """Shut down in a daemon thread, which is abandoned if the collector hangs."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def end() -> None:
        provider.shutdown()
        # The loop may be closed by then.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=end, daemon=True, name="traces-shutdown").start()
    try:
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await done.wait()
    except TimeoutError:
        logging.getLogger(__name__).warning("the last traces could not be sent in time")


def _limit_log_rate(name: str) -> None:
    """Limit the logger's rate: it would log every batch while the collector is down."""
    logger = logging.getLogger(name)
    if not any(isinstance(item, _RateLimitedLog) for item in logger.filters):
        logger.addFilter(_RateLimitedLog())


class _RateLimitedLog(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        if (now := time.monotonic()) < self._next:
            return False
        self._next = now + WARN_EVERY_SECONDS
        return True


def trace_ids() -> Mapping[str, str]:
    """Return trace id and span id of the current span for log records, if it is traced."""
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(current.trace_id), "span_id": trace.format_span_id(current.span_id)}


def trace_headers() -> Mapping[str, str]:
    """Return headers that propagate the trace context to other services."""
    headers: dict[str, str] = {}
    _TRACE.inject(headers)
    return headers
