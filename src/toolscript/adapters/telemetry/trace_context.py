"""Which trace this is a part of: for logs, and for whoever is asked on the way."""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

# Without the baggage that a caller may have sent along: it is not for others.
_TRACE = TraceContextTextMapPropagator()


def trace_ids() -> Mapping[str, str]:
    """For logs: of what is being done here and now, if that is traced."""
    now = trace.get_current_span().get_span_context()
    if not now.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(now.trace_id), "span_id": trace.format_span_id(now.span_id)}


def trace_headers() -> Mapping[str, str]:
    """For whoever is asked on the way, to say of which trace it is a part."""
    headers: dict[str, str] = {}
    _TRACE.inject(headers)
    return headers
