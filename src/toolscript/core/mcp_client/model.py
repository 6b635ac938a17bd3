"""MCP servers: their specs, their state, the results of calls, and the port that reaches them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from toolscript.core.items import Item, JsonObject

# What a server wrote itself stands behind these in an `error`, and may hold anything, secrets too.
WROTE, SAID = "; it wrote what is no message: ", "; it said: "

MASK = "***"
# Shorter values are words like `1` or `true`: no secrets, and masking them would blot out half a message.
_SHORTEST = 6
_HEADER_FLAGS = frozenset({"header", "h"})
_SECRET_FLAG = re.compile(r"(key|token|secret|password|passwd|credential|auth|bearer)", re.IGNORECASE)


def without_own_words(error: str) -> str:
    """Why a server failed, for people who need not be those who run it."""
    return error.partition(WROTE)[0].partition(SAID)[0]


def in_short(error: str) -> str:
    """Why a server failed, with the last of its own words alone: of a traceback that is the line that says why."""
    reason, said, words = error.partition(SAID)
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return f"{reason}{said}{lines[-1]}" if lines else reason


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


@dataclass(frozen=True)
class ServerSpec:
    """One entry of a config file, variables filled in. What may hold a secret is not printed.

    `inherited` is what it gets of the environment without an entry of its own; `env` beats it.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    start_seconds: float = 30.0
    call_seconds: float = 60.0
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)

    def offers(self, name: str) -> bool:
        """Whether a tool of this name is wanted; patterns as a shell has them."""
        included = not self.include_tools or any(fnmatchcase(name, one) for one in self.include_tools)
        return included and not any(fnmatchcase(name, one) for one in self.exclude_tools)


class ServerStatus(StrEnum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ServerState:
    """How a server is doing. A failed one is tried again by itself; `error` says why it failed."""

    name: str
    transport: Transport
    status: ServerStatus
    error: str = ""
    protocol: str = ""
    version: str = ""
    tools: int = 0
    prompts: int = 0
    resources: int = 0


@dataclass(frozen=True)
class Offer:
    """All that one server has, as of its last listing. `refused` are entries that were no items, and why."""

    server: str
    items: tuple[Item, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallResult:
    """What a tool answered: content blocks as the server sent them, and whether it calls itself an error."""

    content: Sequence[JsonObject] = ()
    structured_content: object = None
    is_error: bool = False


class ToolServers(Protocol):
    """MCP servers, each connected and kept connected by itself; none waits for another."""

    def use(self, specs: Sequence[ServerSpec]) -> None:
        """Starts what is new, ends what is gone, restarts what changed, leaves alone what did not. Never waits."""

    def states(self) -> Sequence[ServerState]: ...
    def offers(self) -> Sequence[Offer]:
        """What the servers that are ready have, in the order of their names."""

    async def changed(self, after: int) -> int:
        """Waits until states or offers are newer than revision `after`; answers the revision they have now."""

    async def call(self, server: str, tool: str, arguments: JsonObject) -> CallResult: ...
    async def close(self) -> None: ...


def masked(text: str, spec: ServerSpec) -> str:
    for secret in sorted(_secrets(spec), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(spec: ServerSpec) -> set[str]:
    named = [*spec.env.values(), *spec.headers.values(), *_of_arguments(spec.args), *_of_url(spec.url)]
    # `Bearer abc` is a secret as a whole, and so is `abc`.
    words = [word for value in named for word in (value, value.rpartition(" ")[2])]
    return {word for word in words if len(word) >= _SHORTEST}


def _of_arguments(args: tuple[str, ...]) -> list[str]:
    secrets = []
    for before, given in zip(("", *args), args, strict=False):
        flag, equals, value = given.partition("=")
        if equals and _SECRET_FLAG.search(flag):
            secrets.append(value)
        elif before.startswith("-") and _SECRET_FLAG.search(before):
            secrets.append(given)
        header, colon, value = given.partition(":")
        if colon and (before.lstrip("-").lower() in _HEADER_FLAGS or _SECRET_FLAG.search(header)):
            secrets.append(value.strip())
        secrets += _of_url(given) if "://" in given else []
    return secrets


def _of_url(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    return [value for _, value in parse_qsl(parts.query)] + [parts.username or "", parts.password or ""]
