"""What is wrong in a config file, in words that never hold a value: values may be secrets."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


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
