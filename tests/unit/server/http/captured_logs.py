"""Captures log lines at the most verbose level."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

from toolscript.core.web.logs import configure_logs, no_trace


@contextmanager
def logged(
    level: str = "debug", style: str = "json", trace_ids: Callable[[], Mapping[str, str]] = no_trace
) -> Iterator[StringIO]:
    """Restores all loggers at the end."""
    root = logging.getLogger()
    names = ("toolscript", "uvicorn.access", "httpx", "httpx2", "alembic", "mcp")
    before = root.handlers[:], root.level, [logging.getLogger(name).level for name in names]
    output = StringIO()
    try:
        with redirect_stderr(output):
            configure_logs(level, style, trace_ids)
            yield output
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        for name, was in zip(names, before[2], strict=True):
            logging.getLogger(name).setLevel(was)


def lines(output: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]
