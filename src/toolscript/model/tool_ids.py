"""Names of tools across servers: `server__tool`, split at the first `__`."""

from collections.abc import Collection

from toolscript.errors import InvalidRequest
from toolscript.model.text import readable

SEPARATOR = "__"
CLIENT_PREFIX = "mcp__toolscript__"


def tool_id(server: str, name: str) -> str:
    return f"{server}{SEPARATOR}{name}"


def split_tool_id(text: str) -> tuple[str, str]:
    """Server and tool. The prefix a client puts before the names of our own endpoint is taken off."""
    server, separator, name = readable(text).removeprefix(CLIENT_PREFIX).partition(SEPARATOR)
    if not (server and separator and name):
        raise InvalidRequest(
            f"{text[:200]!r} is not the name of a tool",
            hint="write server__tool, as a search names it",
        )
    return server, name


def is_wanted(server: str, name: str, wanted: Collection[str]) -> bool:
    """Whether a filter of servers and `server__tool` names lets a tool through; an empty one lets all."""
    return not wanted or server in wanted or tool_id(server, name) in wanted
