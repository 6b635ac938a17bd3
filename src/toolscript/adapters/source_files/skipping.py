"""A reason to leave a file alone, within the process that reads it."""

from typing import NoReturn


class Skip(Exception):
    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def skip(reason: str, hint: str = "") -> NoReturn:
    raise Skip(reason, hint)


def in_megabytes(count: int) -> str:
    return f"{count / 1024 / 1024:,.0f} MB"
