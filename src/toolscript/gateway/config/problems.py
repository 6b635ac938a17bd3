"""Names of servers. A tool is called `server__tool`, which is split at the first `__`."""

import re

MOST_LETTERS = 64
RULE = "1 to 64 letters, digits, `_`, `.` or `-`, without `__` and without `_` at the end"

# `a_` and `tool` would make `a___tool`, which reads as `a` and `_tool`.
_NAME = re.compile(r"(?!.*__)[A-Za-z0-9_.-]{0,63}[A-Za-z0-9.-]")


def is_server_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def nearest_name(name: str) -> str:
    """The name as it may be written; the same for the same name, and a name that is allowed stays as it is."""
    if is_server_name(name):
        return name
    plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.-]+", "-", name))
    return plain.strip("-_ ")[:MOST_LETTERS].rstrip("-_") or "server"


def with_suffix(name: str, suffix: str) -> str:
    """Room is made at the end of the name, never in the suffix."""
    return nearest_name(f"{name[: MOST_LETTERS - len(suffix) - 1].rstrip('-_')}-{suffix}")
