"""Logs as one line each, JSON or text, on stderr, with the request's id."""

import logging
import sys

import structlog

from toolscript.surfaces.request_context import current_request_id

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
    )
)


def _with_request_id(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    if request_id := current_request_id.get():
        event["request_id"] = request_id
    return event


def configure_logs(level: str, style: str) -> None:
    shared: list[structlog.typing.Processor] = [
        _with_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _FACTS,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
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
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "httpx", "httpx2", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
