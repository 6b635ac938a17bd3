"""Problems of a config file and names that servers may have. Messages never hold a value: it may be secret."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MAX_LETTERS = 64
RULE = "1 to 64 letters, digits, `_`, `.` or `-`, without `__` and without `_` at the end"

# `a_` and `tool` would make `a___tool`, which reads as `a` and `_tool`.
_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_.-]{0,63}[A-Za-z0-9.-]")


class Severity(StrEnum):
    """With an error the server is left out. With a warning it runs, and something in it has no effect."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """`server` is empty when the file as a whole is meant."""

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
    """A problem before it is known whose it is."""

    message: str
    fix: str
    severity: Severity = Severity.ERROR


def is_server_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def nearest_name(name: str) -> str:
    """The name as it may be written; the same for the same name, and a name that is allowed stays as it is."""
    if is_server_name(name):
        return name
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.-]+", "-", name))
    return plain.strip("-_ ")[:MAX_LETTERS].rstrip("-_") or "server"


def with_suffix(name: str, suffix: str) -> str:
    """Room is made at the end of the name, never in the suffix."""
    return nearest_name(f"{name[: MAX_LETTERS - len(suffix) - 1].rstrip('-_')}-{suffix}")
