"""Logs as one line each, JSON or text, on stderr, with the request's id."""

import logging
import sys

import structlog

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


def configure_logs(level: str, style: str) -> None:
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
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
