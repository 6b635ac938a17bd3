"""An in-memory gateway: a few tools, found by the words they contain, with scripted replies."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from toolscript.core.errors import Conflict, NotFound, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject, is_allowed, tool_id
from toolscript.core.mcp_client.model import CallResult, ServerState
from toolscript.gateway.approvals import Decision, Review
from toolscript.gateway.entries import Entries
from toolscript.gateway.listed_tools import ListedTools, ToolPage
from toolscript.gateway.model import (
    LOWER_THRESHOLD,
    PAGE,
    Change,
    EntryPage,
    GatewayHealth,
    LocalAnswer,
    LocalHit,
    LocalQuery,
    ScoreParts,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
EVERY_BLOCK: tuple[JsonObject, ...] = (
    {"type": "text", "text": "four rows", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "memo://rows", "mimeType": "text/plain", "text": "a,b"}},
    {"type": "resource_link", "uri": "memo://all", "name": "all rows"},
)
GOOD_ENOUGH = 0.4
LONG = "Reads rows from a database. " + "It goes on about every detail of it for very long, " * 10


def tool(server: str, name: str, description: str, **properties: str) -> Item:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return Item(tool_id(server, name), ItemKind.TOOL, server, name, description, input_schema=schema)


ITEMS = (
    tool("files", "read_file", "Read the contents of a file.", path="string"),
    tool("files", "write_file", "Write text to a file.", path="string", text="string"),
    replace(
        tool("github", "create_issue", "Create an issue in a repository.", title="string"),
        output_schema={"type": "object", "properties": {"number": {"type": "integer"}}},
        annotations={"destructiveHint": False},
    ),
    tool("database", "query_rows", LONG, sql="string"),
    Item("files__summary", ItemKind.PROMPT, "files", "summary", "Sum up a file."),
)


def _words(text: str) -> list[str]:
    return text.lower().replace("_", " ").split()


def _has(word: str) -> Callable[[Item], bool]:
    return lambda item: word in f"{item.name} {item.description}".lower()


@dataclass
class GatewayDouble:
    """`replies` are the results of calls by tool; an exception is raised."""

    found: Sequence[Item] = ITEMS
    replies: dict[str, CallResult | Exception] = field(default_factory=dict)
    semantic: bool = True
    broken: Exception | None = None
    calls: list[tuple[str, JsonObject]] = field(default_factory=list)
    answers: dict[str, JsonObject] = field(default_factory=dict)
    requests: list[tuple[str, JsonObject]] = field(default_factory=list)
    watched: list[tuple[frozenset[str], Callable[[Change], None]]] = field(default_factory=list)
    queries: list[LocalQuery] = field(default_factory=list)
    waiting: Sequence[Review] = ()
    decisions: list[tuple[Decision, Sequence[str]]] = field(default_factory=list)

    async def search(self, query: LocalQuery) -> LocalAnswer:
        self.queries.append(query)
        if self.broken:
            raise self.broken
        scored = sorted((self._hit(item, query.text) for item in self._tools()), key=lambda hit: -hit.confidence)
        hits = tuple(hit for hit in scored if hit.confidence >= query.threshold)
        misses = () if hits else tuple(scored[:2])
        fits = bool(scored) and scored[0].confidence >= GOOD_ENOUGH
        hint = f"Say it in other words{f', or {LOWER_THRESHOLD}' if fits else ''}."
        return LocalAnswer(
            query=query.text,
            hits=hits[: query.limit],
            total=len(hits),
            threshold=query.threshold,
            semantic=self.semantic,
            hint="" if hits else hint,
            near_misses=misses,
            good_match=fits and bool(hits),
            unmatched=tuple(word for word in _words(query.text) if not any(map(_has(word), self._tools()))),
        )

    def _tools(self) -> list[Item]:
        return [item for item in self.found if item.kind is ItemKind.TOOL]

    @staticmethod
    def _hit(item: Item, text: str) -> LocalHit:
        words = _words(text)
        matched = [word for word in words if _has(word)(item)]
        share = len(matched) / len(words)
        parts = ScoreParts(words=share, contributions={"words": share, "action": -0.5})
        return LocalHit(item, share, f"has {', '.join(matched) or 'nothing'}", parts)

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        return [item for item in self.found if is_allowed(item.server, item.name, wanted)]

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        names = [tool_id(item.server, item.name) for item in await self.items(wanted)]
        return "\n".join(f"{'function' if compact else 'export function'} {name}(): unknown" for name in names)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        self.calls.append((tool, arguments))
        if tool not in {tool_id(item.server, item.name) for item in self._tools()}:
            raise NotFound(f"there is no tool {tool}")
        reply = self.replies.get(tool, CallResult(({"type": "text", "text": f"called {tool}"},)))
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def listed_tools(self, after: str = "") -> ToolPage:
        return ListedTools(self.found).page(after)

    async def tool_named(self, name: str) -> str:
        item = ListedTools(self.found).find(name)
        return tool_id(item.server, item.name) if item else ""

    async def entries(self, kind: str, cursor: str = "", limit: int = PAGE) -> EntryPage:
        return Entries(self.found).page(kind, cursor, limit)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        self.requests.append((method, params))
        reply = self.answers.get(str(params.get("name") or params.get("uri")))
        if reply is None:
            raise NotFound(f"there is no {params}")
        return reply

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        self.watched.append((frozenset(uris), tell))
        await asyncio.Event().wait()

    async def reviews(self) -> Sequence[Review]:
        return self.waiting

    async def decide(self, decision: Decision, digests: Sequence[str]) -> Sequence[Review]:
        if {*digests} - {review.digest for review in self.waiting}:
            raise Conflict("a definition is not there any more")
        self.decisions.append((decision, digests))
        return [review for review in self.waiting if review.digest in digests]

    async def servers(self) -> Sequence[ServerState]:
        return ()

    async def health(self) -> GatewayHealth:
        return GatewayHealth("0", ready=True, semantic=self.semantic, model="none", items=len(self.found))


def down(server: str) -> ServerUnavailable:
    return ServerUnavailable(f"{server} is not connected", hint="`toolscript servers` says why")
