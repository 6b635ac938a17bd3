"""MCP servers: their specs, their state, the results of calls, and the port that reaches them."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Protocol
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from toolscript.core.errors import ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject

# These introduce a server's own words in an `error`. They may be anything, also secrets, or orders to a model.
STDOUT_PREFIX, STDERR_PREFIX, SAID_PREFIX = "; stdout is not JSON-RPC: ", "; stderr: ", "; it says: "

MASK = "***"
MAX_MESSAGE = 2_000
# Shorter values are words like `1` or `true`: no secrets, and masking them would make messages unreadable.
_MIN_SECRET = 6
# Scopes come from servers, and are shown in a command.
_SHELL_SAFE = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")
# What a person calls a secret is masked if it is shorter, too.
_MIN_KNOWN = 4
_MIN_LINE = 8
# Shorter steps of a path are words. A longer one with a digit may be what lets whoever knows it in.
_MIN_STEP = 16
_HEADER_FLAGS = frozenset({"header", "h"})
_SECRET_FLAG = re.compile(r"(key|token|secret|password|passwd|credential|auth|bearer)", re.IGNORECASE)


def without_server_output(error: str) -> str:
    """Return why a server failed, without the server's own words: for agents, and people who do not run it."""
    for prefix in (SAID_PREFIX, STDOUT_PREFIX, STDERR_PREFIX):
        error = error.partition(prefix)[0]
    return error


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


@dataclass(frozen=True)
class OAuthClient:
    """How to sign in to a server, where it differs from what the server's metadata say.

    `client_id`: one that was registered by hand. `metadata_url`: where the user has a client id metadata document.
    `callback_port`: the port of the redirect address; 0: a free one. `issuer`: the only authorization server that
    is used.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    metadata_url: str = ""
    callback_port: int = 0
    issuer: str = ""


@dataclass(frozen=True)
class ServerSpec:
    """One entry of a config file, variables filled in. Fields that may contain secrets are not in its repr.

    `inherited` are variables that every server gets from the environment; `env` overrides them. `file` is the
    config file: servers with the same entry are the same, whichever file has it. `secrets` are those that its
    values were filled with, by name. `written` is what the entry runs or where it leads, as the file has it:
    without the values of variables.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth: OAuthClient = OAuthClient()
    include_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    start_seconds: float = 30.0
    call_seconds: float = 60.0
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    file: str = field(default="", compare=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    written: str = field(default="", repr=False, compare=False)

    def offers(self, name: str) -> bool:
        """Return whether the config includes a tool of this name, by shell patterns."""
        included = not self.include_tools or any(fnmatchcase(name, pattern) for pattern in self.include_tools)
        return included and not any(fnmatchcase(name, pattern) for pattern in self.exclude_tools)

    @property
    def may_sign_in(self) -> bool:
        """Return whether its requests may get a token: it is remote, and its entry has no credentials already."""
        has_own = "@" in self.url.partition("://")[2].partition("/")[0]
        return bool(self.url) and not has_own and all(name.lower() != "authorization" for name in self.headers)


class ServerStatus(StrEnum):
    STARTING = "starting"
    READY = "ready"
    ASLEEP = "asleep"
    FAILED = "failed"
    SIGN_IN_NEEDED = "sign-in needed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ServerState:
    """State of a server. `error` is the reason of a failure; it is retried, unless the fault is ours.

    One that needs a sign-in is connected as soon as its person has signed in; `error` says how.

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


def how_to_sign_in(server: str, scopes: Sequence[str] = ()) -> str:
    """Return the next step, for people and for agents: no agent can take it. `scopes`: what the server misses."""
    sound = scopes if all(map(_SHELL_SAFE.fullmatch, scopes)) else ()
    options = "".join(f" --scope {scope}" for scope in sound)
    return f"only a person can sign in: `toolscript login {server}{options}`"


def sign_in_needed(server: str, scopes: Sequence[str] = ()) -> ServerUnavailable:
    return ServerUnavailable(
        f"{server} needs a sign-in{' for more scopes' if scopes else ''}: the call was not made",
        hint=f"{how_to_sign_in(server, scopes)}; then repeat the call",
        details={"server": server, "sign_in": True},
    )


# Raises what keeps a call from being made.
Check = Callable[[], Awaitable[object]]


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

    async def call(self, server: str, tool: str, arguments: JsonObject, check: Check | None = None) -> CallResult:
        """Call a tool. `check` comes right before, when the server is awake: what it offers may have changed."""

    async def request(
        self, server: str, method: str, params: JsonObject, check: Check | None = None
    ) -> JsonObject:
        """Send a request without an effect, such as `prompts/get`, and return the result as the server sent it."""

    async def watch(self, server: str, uri: str, tell: Callable[[], None]) -> None:
        """Tell whenever a resource was updated, until cancelled; raise ServerRejected if the server cannot."""

    async def close(self) -> None: ...


def unfilled(text: str, spec: ServerSpec) -> str:
    """Return a text of the entry with the names of its secrets in place of their values."""
    for name, value in sorted(spec.secrets.items(), key=lambda secret: len(secret[1]), reverse=True):
        text = text.replace(value, f"${{keyring:{name}}}") if len(value) >= _MIN_KNOWN else text
    return text


def shown(message: str, spec: ServerSpec) -> str:
    """Return a message of a server as it is shown: without its secrets, and not too long."""
    return masked(message, spec)[:MAX_MESSAGE]


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
    named.append(spec.oauth.client_secret)
    # Both `Bearer abc` and `abc` are secrets.
    words = [word for value in named for word in (value, value.rpartition(" ")[2])]
    known = [form for value in spec.secrets.values() for form in _forms(value)]
    return {word for word in words if len(word) >= _MIN_SECRET} | {
        form for form in known if len(form) >= _MIN_KNOWN
    }


def _forms(secret: str) -> list[str]:
    """Return a secret as servers print it: as it is, in JSON, in a URL, and line by line."""
    lines = [line.strip() for line in secret.splitlines()]
    return [
        secret,
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        *(line for line in lines if len(line) >= _MIN_LINE),
    ]


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
    fields = parts.query.split("&")
    steps = [*parts.path.split("/"), *(field for field in fields if "=" not in field)]
    keys = [step for step in steps if len(step) >= _MIN_STEP and any(map(str.isdigit, step))]
    values = [field.partition("=")[2] for field in fields]
    written = [*keys, *values, parts.username or "", parts.password or ""]
    # A server may print them as they are sent, or as they are meant.
    return [form for value in written for form in (value, unquote(value), unquote_plus(value))]
