"""Queries, answers and health of a gateway, and the port `Gateway`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from toolscript.core.errors import BlankQuery, InvalidRequest
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.core.retrieval.query import MAX_LIMIT, MAX_QUERY, SearchType
from toolscript.core.text import readable
from toolscript.gateway.approvals import Decision, Review
from toolscript.gateway.listed_tools import ToolPage
from toolscript.gateway.rules import ToolRisk

DEFAULT_LIMIT = 3
DEFAULT_THRESHOLD = 0.35
# Part of the hint of an answer in which something fits, and nothing reaches the threshold.
LOWER_THRESHOLD = "a lower threshold"
# Part of the hint of an answer to the name of a tool that the config excludes, and a detail of its error.
EXCLUDES, EXCLUDED = "the config file excludes", "excluded"
# What servers offer beside tools, as lists of the gateway, and the requests of clients that concern it.
TOOLS, PROMPTS, RESOURCES, TEMPLATES = "tools", "prompts", "resources", "templates"
# Not a list of MCP, and what the meta-tools name.
SERVERS = "servers"
LISTS = (PROMPTS, RESOURCES, TEMPLATES)
GET_PROMPT, READ_RESOURCE, COMPLETE = "prompts/get", "resources/read", "completion/complete"
SUBSCRIBE = "resources/subscribe"
PAGE = 200
HOW_TO_GET_SERVERS = (
    "`toolscript config import` imports those of your other clients, or shows how to write ~/.toolscript.json"
)


@dataclass(frozen=True)
class LocalQuery:
    """`search_type` None: the gateway's default."""

    text: str
    limit: int = DEFAULT_LIMIT
    threshold: float = DEFAULT_THRESHOLD
    kind: ItemKind | None = ItemKind.TOOL
    search_type: SearchType | None = None

    def __post_init__(self) -> None:
        if len(self.text) > MAX_QUERY:
            raise InvalidRequest(f"query is longer than {MAX_QUERY} characters", details={"field": "q"})
        object.__setattr__(self, "text", readable(self.text).strip())
        if not self.text:
            raise BlankQuery("the query is blank", hint="say in a few words what the tool should do")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit must be 1 to {MAX_LIMIT}", details={"field": "limit"})
        if not 0.0 <= self.threshold <= 1.0:
            raise InvalidRequest("threshold must be 0 to 1", details={"field": "threshold"})


@dataclass(frozen=True)
class WordMatch:
    """A word of the query, and the item field that contains it or what it was read as, if that is another word."""

    word: str
    field: str
    read_as: str = ""


@dataclass(frozen=True)
class ScoreParts:
    """Components of a confidence, each 0 to 1; `semantic` is None without a dense score.

    `contributions` has what each part of the ranking adds to the item's score; `probability` is that the item is
    the right one, of which the confidence is made, and None where a score is the confidence.
    """

    semantic: float | None = None
    words: float = 0.0
    fuzzy: float = 0.0
    boost: float = 0.0
    matched: tuple[WordMatch, ...] = ()
    probability: float | None = None
    contributions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalHit:
    """`score` is the sum that ranks the hits of one query; only the searching process knows it.

    `risk` is what calling the tool may do at worst, and None where the searching process has no rules. `also` are
    the ids of twins: the same tool of other servers; `paths` tell by server what twins are for, where the
    commands of their servers do. `deprecated`: its source says that it should not be used.
    """

    item: Item
    confidence: float
    reason: str
    parts: ScoreParts = field(default_factory=ScoreParts)
    score: float = field(default=0.0, compare=False)
    risk: ToolRisk | None = None
    also: tuple[str, ...] = ()
    deprecated: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """The place of an item among the candidates of a query, whatever limit and threshold.

    `place` is None for an item that no retriever found; `unmatched` are the query words that the item lacks.
    """

    hit: LocalHit
    place: int | None
    candidates: int
    unmatched: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalStep:
    """One step of a request for several things, and the hits for it alone, best first.

    `good_match` says that something fits the step, and is among its hits. `near_misses` are the nearest items
    where it has no hits.
    """

    query: str
    hits: tuple[LocalHit, ...]
    good_match: bool
    near_misses: tuple[LocalHit, ...] = ()


@dataclass(frozen=True)
class LocalAnswer:
    """`total` counts the items that reach the threshold; `near_misses` are the nearest when none reaches it.

    `semantic` is False when only the sparse retriever answered; else `model` names the model that ranked. `hint`
    advises on that, or on an empty answer.
    `good_match` says that something fits, and is among the hits; `fit` is the logit of that, None where confidence
    decides. `steps` has an answer for each step of a request for several things, and is empty for a single one.
    `unmatched` are the query words that none of the top candidates has. `rules` say what a person's rules did to
    the results; `read_as` is the query as it was read, if that is not how it was typed. `milliseconds` is the time
    per stage, measured in the searching process, which also knows the search type that was to run, the version of
    its index (None without a model) and of its weights (None where none apply).
    """

    query: str
    hits: tuple[LocalHit, ...]
    total: int
    threshold: float
    semantic: bool
    hint: str = ""
    near_misses: tuple[LocalHit, ...] = ()
    good_match: bool = True
    unmatched: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    read_as: str = ""
    steps: tuple[LocalStep, ...] = ()
    model: str | None = None
    milliseconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    fit: float | None = field(default=None, compare=False)
    search_type: SearchType = field(default=SearchType.HYBRID, compare=False)
    index_version: str | None = field(default=None, compare=False)
    weights_version: str | None = field(default=None, compare=False)

    @property
    def search_type_used(self) -> SearchType:
        return self.search_type if self.semantic else SearchType.KEYWORD

    @property
    def is_below_threshold(self) -> bool:
        """Return whether nothing was returned, though something fits: then the hint suggests a lower threshold."""
        return not self.hits and LOWER_THRESHOLD in self.hint

    @property
    def all_hits(self) -> tuple[LocalHit, ...]:
        """The hits of the steps in their order, then all others; each item once."""
        hits: dict[str, LocalHit] = {}
        for hit in (*(hit for step in self.steps for hit in step.hits), *self.hits):
            hits.setdefault(hit.item.key, hit)
        return tuple(hits.values())

    def with_risks(self, risk_of: Callable[[Item], ToolRisk]) -> "LocalAnswer":
        def rated(hits: tuple[LocalHit, ...]) -> tuple[LocalHit, ...]:
            return tuple(
                replace(hit, risk=risk_of(hit.item)) if hit.item.kind is ItemKind.TOOL else hit for hit in hits
            )

        steps = tuple(
            replace(step, hits=rated(step.hits), near_misses=rated(step.near_misses)) for step in self.steps
        )
        return replace(self, hits=rated(self.hits), near_misses=rated(self.near_misses), steps=steps)


@dataclass(frozen=True)
class GatewayHealth:
    """`ready`: searches are answered. `semantic`: dense retrieval works, too, with `model`.

    `note`: what is missing, and why. `is_fallback`: the model stands in for the one that was to be used.
    `activity`: why the activity log is not written.
    """

    version: str
    ready: bool
    semantic: bool
    model: str
    items: int
    servers: tuple[ServerState, ...] = ()
    note: str = ""
    is_fallback: bool = False
    activity: str = ""


@dataclass(frozen=True)
class EntryPage:
    """Prompts, resources or templates as MCP lists them. `next_cursor` is empty on the last page."""

    entries: Sequence[JsonObject]
    next_cursor: str = ""


@dataclass(frozen=True)
class Change:
    """A list that changed: TOOLS, PROMPTS, RESOURCES or SERVERS; or the listed URI of a resource that was."""

    list: str = ""
    uri: str = ""


class DirectGateway(Protocol):
    """What servers offer, by the names of the lists, and requests for it."""

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        """Return the indexed items; `wanted` names servers and `server__tool`s, empty means all."""

    async def call(self, tool: str, arguments: JsonObject) -> CallResult: ...
    async def listed_tools(self, after: str = "") -> ToolPage:
        """Return the tools under the names by which clients list them, those whose names follow `after`."""

    async def tool_named(self, name: str) -> str:
        """Return the `server__tool` of a listed name, or of a bare one that is unique; else an empty string."""

    async def entries(self, kind: str, cursor: str = "", limit: int = PAGE) -> EntryPage:
        """Return a page of the prompts, resources or templates of all servers, as MCP lists them."""

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Get a prompt, read a resource or complete an argument, by the names of the lists.

        SUBSCRIBE sends nothing, and raises what reading the resource would raise here. As in `call`, what the
        server says meanwhile goes to the relay of the context.
        """

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        """Tell of lists that change and of these resources, until cancelled; one that nobody has never changes."""

    async def reviews(self) -> Sequence[Review]:
        """Return the definitions that nobody has approved, held or shown, and those that were rejected."""


class Gateway(Protocol):
    """A gateway, in this process or another."""

    async def search(self, query: LocalQuery) -> LocalAnswer: ...
    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        """Return the indexed items; `wanted` names servers and `server__tool`s, empty means all."""

    async def call(self, tool: str, arguments: JsonObject) -> CallResult: ...
    async def reviews(self) -> Sequence[Review]:
        """Return the definitions that nobody has approved, held or shown, and those that were rejected."""

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        """Return the TypeScript module of these tools."""

    async def decide(self, decision: Decision, digests: Sequence[str]) -> Sequence[Review]:
        """Approve or reject exactly these definitions. Raise Conflict if one is not there any more."""

    async def servers(self) -> Sequence[ServerState]: ...
    async def health(self) -> GatewayHealth: ...


class McpGateway(Gateway, DirectGateway, Protocol):
    """A gateway in this process, with all that MCP clients are offered."""


@dataclass(frozen=True)
class Need:
    """Requirements of a command: the embedding model, cached tools, or a single server.

    `refresh` queries the servers again even when a gateway is running. `is_call`: it has an effect: make it once.
    """

    model: bool = True
    uses_cache: bool = True
    refresh: bool = False
    only_server: str | None = None
    is_call: bool = False
