"""Logs as one line each, JSON or text, on stderr, with the ids of the request and of its trace.

What documents say, what people search for, tokens and secrets are in none of them: records of our own carry a few
named facts, libraries are not asked for what they say to developers, and of an error that nobody expected the line
says where it came from, and what it says itself only where that cannot be somebody's text.
"""

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping

import structlog
from structlog.typing import EventDict

from toolscript.core.errors import ToolscriptError
from toolscript.core.web.request_context import current_request_id

OURS = "toolscript"
# Errors may come from each other in a circle.
DEEPEST = 8

# Facts that the core attaches to its records; anything else a library adds stays out.
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
        "result_count",
        "latency_ms",
    )
)

# They name what is in programs; the others quote what they stumbled over.
_SPEAK_OF_PROGRAMS = (ToolscriptError, AttributeError, ImportError, NameError, NotImplementedError, TypeError)


def no_trace() -> Mapping[str, str]:
    return {}


def configure_logs(level: str, style: str, trace_ids: Callable[[], Mapping[str, str]] = no_trace) -> None:
    """`trace_ids` tells of what is being done at that moment, if somebody traces it."""

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
    """To developers libraries print whole requests, with whatever people sent in them."""
    root.setLevel(max(level, logging.INFO))
    logging.getLogger(OURS).setLevel(level)
    for noisy in ("uvicorn.access", "httpx", "httpx2", "alembic", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _with_exception(_: object, __: str, event: EventDict) -> EventDict:
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if isinstance(error, BaseException):
        event["exception"] = "".join(_told(error)).rstrip()
    return event


def _told(error: BaseException, deep: int = 0) -> Iterator[str]:
    """Where it was raised, and what it came from, which comes first."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and deep < DEEPEST:
        yield from _told(before, deep + 1)
        yield "\nwhich led to\n\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__name__}{_said(error)}\n"
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) and deep < DEEPEST else ():
        yield "\nin it\n\n"
        yield from _told(inner, deep + 1)


def _said(error: BaseException) -> str:
    if isinstance(error, _SPEAK_OF_PROGRAMS):
        return f": {error}"
    return f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
