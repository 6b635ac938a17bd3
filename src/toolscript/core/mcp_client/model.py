"""MCP servers: their specs, their state, the results of calls, and the port that reaches them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from toolscript.core.items import Item, ItemKind, JsonObject

# These introduce a server's own output in an `error`. It may contain anything, also secrets.
STDOUT_PREFIX, STDERR_PREFIX = "; stdout is not JSON-RPC: ", "; stderr: "

MASK = "***"
# Shorter values are words like `1` or `true`: no secrets, and masking them would make messages unreadable.
_MIN_SECRET = 6
_HEADER_FLAGS = frozenset({"header", "h"})
_SECRET_FLAG = re.compile(r"(key|token|secret|password|passwd|credential|auth|bearer)", re.IGNORECASE)


def without_server_output(error: str) -> str:
    """Return why a server failed, without the server's own output, for people who do not run it."""
    return error.partition(STDOUT_PREFIX)[0].partition(STDERR_PREFIX)[0]


def short_error(error: str) -> str:
    """Return why a server failed, with the last line of its stderr: in a traceback that is the error."""
    reason, prefix, stderr = error.partition(STDERR_PREFIX)
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return f"{reason}{prefix}{lines[-1]}" if lines else reason


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


@dataclass(frozen=True)
class ServerSpec:
    """One entry of a config file, variables filled in. Fields that may contain secrets are not in its repr.

    `inherited` are variables that every server gets from the environment; `env` overrides them. `file` is the
    config file: servers with the same entry are the same, whichever file has it.
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
    file: str = field(default="", compare=False)

    def offers(self, name: str) -> bool:
        """Return whether the config includes a tool of this name, by shell patterns."""
        included = not self.include_tools or any(fnmatchcase(name, pattern) for pattern in self.include_tools)
        return included and not any(fnmatchcase(name, pattern) for pattern in self.exclude_tools)


class ServerStatus(StrEnum):
    STARTING = "starting"
    READY = "ready"
    ASLEEP = "asleep"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ServerState:
    """State of a server. A failed server is retried automatically; `error` is the reason of the failure.

    One that is asleep has no process, and is woken by a call; its counts are those of its last listing. One that
    `restarts` worked, has crashed for the first time, and is being started again.
    """

    name: str
    transport: Transport
    status: ServerStatus
    error: str = ""
    protocol: str = ""
    version: str = ""
    tools: int = 0
    prompts: int = 0
    resources: int = 0
    restarts: bool = False

    @property
    def answers(self) -> bool:
        """Return whether a call is answered: now, or once it has woken the server."""
        return self.status in (ServerStatus.READY, ServerStatus.ASLEEP)


@dataclass(frozen=True)
class Offer:
    """Items of one server as of its last listing. `refused` are invalid entries with the reason."""

    server: str
    items: tuple[Item, ...] = ()
    refused: tuple[str, ...] = ()

    @cached_property
    def tools(self) -> Mapping[str, Item]:
        """The tools by name: a call must not look through all of them."""
        return {item.name: item for item in self.items if item.kind is ItemKind.TOOL}


@dataclass(frozen=True)
class CallResult:
    """Result of a tool call: content blocks as the server sent them, and its error flag."""

    content: Sequence[JsonObject] = ()
    structured_content: object = None
    is_error: bool = False


class ToolServers(Protocol):
    """MCP servers. Each has its own supervised connection; no server waits for another."""

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None:
        """Start new servers, stop removed ones and restart changed ones; the others keep running. Never waits.

        A new server with a cached offer may sleep until it is called.
        """

    def states(self) -> Sequence[ServerState]: ...
    def offers(self) -> Sequence[Offer]:
        """Return the offers of the servers that are ready or asleep, ordered by name."""

    async def changed(self, after: int) -> int:
        """Wait until states or offers are newer than revision `after`; return the current revision."""

    async def call(self, server: str, tool: str, arguments: JsonObject) -> CallResult: ...
    async def request(self, server: str, method: str, params: JsonObject) -> JsonObject:
        """Send a request without an effect, such as `prompts/get`, and return the result as the server sent it."""

    async def watch(self, server: str, uri: str, tell: Callable[[], None]) -> None:
        """Tell whenever a resource was updated, until cancelled; raise ServerRejected if the server cannot."""

    async def close(self) -> None: ...


def masked(text: str, spec: ServerSpec) -> str:
    for secret in sorted(_secrets(spec), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def masked_values(value: JsonObject, spec: ServerSpec) -> dict[str, object]:
    """Return a JSON object with what is secret in its texts masked."""

    def plain(inner: object) -> object:
        if isinstance(inner, str):
            return masked(inner, spec)
        if isinstance(inner, Mapping):
            return {masked(str(key), spec): plain(part) for key, part in inner.items()}
        return [plain(part) for part in inner] if isinstance(inner, list | tuple) else inner

    return {key: plain(part) for key, part in value.items()}


def _secrets(spec: ServerSpec) -> set[str]:
    named = [*spec.env.values(), *spec.headers.values(), *_argument_secrets(spec.args), *_url_secrets(spec.url)]
    # Both `Bearer abc` and `abc` are secrets.
    words = [word for value in named for word in (value, value.rpartition(" ")[2])]
    return {word for word in words if len(word) >= _MIN_SECRET}


def _argument_secrets(args: tuple[str, ...]) -> list[str]:
    secrets = []
    for previous, argument in zip(("", *args), args, strict=False):
        flag, equals, value = argument.partition("=")
        if equals and _SECRET_FLAG.search(flag):
            secrets.append(value)
        elif previous.startswith("-") and _SECRET_FLAG.search(previous):
            secrets.append(argument)
        header, colon, value = argument.partition(":")
        if colon and (previous.lstrip("-").lower() in _HEADER_FLAGS or _SECRET_FLAG.search(header)):
            secrets.append(value.strip())
        secrets += _url_secrets(argument) if "://" in argument else []
    return secrets


def _url_secrets(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return [url]
    return [value for _, value in parse_qsl(parts.query)] + [parts.username or "", parts.password or ""]
