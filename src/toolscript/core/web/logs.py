"""Logs on stderr, one line each, JSON or text, with request id and trace id.

Logs never contain document texts, queries, tokens or secrets: our records carry a few named fields, libraries do
not log at debug level, and an unexpected error is logged with its traceback, and with its message only if the
message cannot quote user data.
"""

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping

import structlog
from structlog.typing import EventDict

from toolscript.core.errors import ToolscriptError
from toolscript.core.web.request_context import current_request_id

ROOT_LOGGER = "toolscript"
# Causes of errors may form a cycle.
MAX_CAUSES = 8

# Fields that our records may carry; fields that libraries add are dropped.
_FACTS = structlog.stdlib.ExtraAdder(
    allow=(
        "part",
        "reason",
        "method",
        "path",
        "status",
        "took_ms",
        "done",
        "total",
        "task",
        "file",
        "label",
        "server",
        "tenant",
        "client",
        "response_bytes",
        "query",
        "query_id",
        "result_count",
        "latency_ms",
    )
)

# Messages of these name code; messages of other errors may quote data.
_SAFE_MESSAGES = (ToolscriptError, AttributeError, ImportError, NameError, NotImplementedError, TypeError)


def no_trace() -> Mapping[str, str]:
    return {}


def configure_logs(level: str, style: str, trace_ids: Callable[[], Mapping[str, str]] = no_trace) -> None:
    """Configure logging. `trace_ids` returns the ids of the current trace, if there is one."""

    def with_ids(_: object, __: str, event: EventDict) -> EventDict:
        if request_id := current_request_id.get():
            event["request_id"] = request_id
        event.update(trace_ids())
        return event

    shared: list[structlog.typing.Processor] = [
        with_ids,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _FACTS,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _with_exception,
    ]
    render: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if style == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    _set_levels(root, logging.getLevelNamesMapping()[level.upper()])


def _set_levels(root: logging.Logger, level: int) -> None:
    """Set levels; libraries log whole requests with user data at debug level."""
    root.setLevel(max(level, logging.INFO))
    logging.getLogger(ROOT_LOGGER).setLevel(level)
    for noisy in ("uvicorn.access", "httpx", "httpx2", "alembic", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _with_exception(_: object, __: str, event: EventDict) -> EventDict:
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["exception"] = "".join(_formatted(error)).rstrip()
    return event


def _formatted(error: BaseException, depth: int = 0) -> Iterator[str]:
    """Yield traceback and message of an error, after those of its causes."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < MAX_CAUSES:
        yield from _formatted(cause, depth + 1)
        yield "\nwhich led to\n\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__name__}{_safe_message(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) and depth < MAX_CAUSES else ():
        yield "\nin it\n\n"
        yield from _formatted(inner, depth + 1)


def _safe_message(error: BaseException) -> str:
    if isinstance(error, _SAFE_MESSAGES):
        return f": {error}"
    return f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
