"""MCP servers: what a person wrote down about one, how it is doing, and what a call of its tools gave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from toolscript.model.items import Item, JsonObject

# What a server wrote itself stands behind these in an `error`, and may hold anything, secrets too.
WROTE, SAID = "; it wrote what is no message: ", "; it said: "


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
