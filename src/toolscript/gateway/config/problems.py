"""Problems of a config file, and valid server names. Messages never contain a value: it may be secret."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MAX_LETTERS = 64
RULE = "1 to 64 letters, digits, `_`, `.` or `-`, without `__` and without `_` at the end"

# `a_` and `tool` would make `a___tool`, which reads as `a` and `_tool`.
_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_.-]{0,63}[A-Za-z0-9.-]")


class Severity(StrEnum):
    """An error excludes the server. With a warning it runs, but part of its entry has no effect."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """`server` is empty for a problem of the whole file."""

    server: str
    file: Path
    message: str
    fix: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        about = f"server {self.server!r} in {self.file}" if self.server else str(self.file)
        return f"{about}: {self.message}; {self.fix}"


@dataclass(frozen=True)
class Finding:
    """A problem without its server and file."""

    message: str
    fix: str
    severity: Severity = Severity.ERROR


def is_server_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def nearest_name(name: str) -> str:
    """Return the nearest valid name, deterministically; a valid name is unchanged."""
    if is_server_name(name):
        return name
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.-]+", "-", name))
    return plain.strip("-_ ")[:MAX_LETTERS].rstrip("-_") or "server"


def with_suffix(name: str, suffix: str) -> str:
    """Append the suffix, truncating the name if necessary, never the suffix."""
    return nearest_name(f"{name[: MAX_LETTERS - len(suffix) - 1].rstrip('-_')}-{suffix}")
