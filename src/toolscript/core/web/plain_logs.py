"""Logs of a gateway: a line of text each, on stderr, with the facts that come with it."""

import logging
import sys
import time

FACTS = ("part", "server", "file", "reason", "method", "path", "status", "took_ms", "total")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        facts = [f"{name}={str(vars(record)[name])!r}" for name in FACTS if name in vars(record)]
        line = " ".join([when, record.levelname.lower(), record.name, repr(record.getMessage())[1:-1], *facts])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_plain_logs(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "uvicorn.error", "httpx2", "mcp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
