"""In-memory MCP servers: a test sets their items, and makes them fail."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from toolscript.core.errors import NotFound, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.mcp_client.model import CallResult, Check, Offer, ServerSpec, ServerState, ServerStatus

Answer = Callable[[str, str, JsonObject], CallResult]


def echo(_server: str, _tool: str, arguments: JsonObject) -> CallResult:
    text = json.dumps(dict(arguments), sort_keys=True)
    return CallResult(({"type": "text", "text": text},), structured_content=dict(arguments))


class MemoryToolServers:
    """A server is ready once it has items, from `put` or from the constructor."""

    def __init__(self, has: Mapping[str, Iterable[Item]] | None = None, answer: Answer = echo) -> None:
        self._has = {server: tuple(items) for server, items in (has or {}).items()}
        self._fallen: dict[str, str] = {}
        self._specs: dict[str, ServerSpec] = {}
        self._answer = answer
        self._watching: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._closed = False
        self._revision = 0
        self._news = asyncio.Event()

    def put(self, server: str, *items: Item) -> None:
        """Replace the items of a server. A failed server is ready again."""
        self._fallen.pop(server, None)
        self._has[server] = items
        self._bump()

    def fall(self, server: str, error: str = "it fell") -> None:
        self._fallen[server] = error
        self._bump()

    def use(self, specs: Sequence[ServerSpec], cached: Sequence[Offer] = ()) -> None:
        """Use these servers. None sleeps: they are in memory anyway."""
        del cached
        by_name = {spec.name: spec for spec in specs}
        if by_name != self._specs or self._closed:
            self._specs, self._closed = by_name, False
            self._bump()

    def states(self) -> Sequence[ServerState]:
        return [self._state(self._specs[name]) for name in sorted(self._specs)]

    def offers(self) -> Sequence[Offer]:
        ready = [state.name for state in self.states() if state.status is ServerStatus.READY]
        return [Offer(name, self._items(self._specs[name])) for name in ready]

    async def changed(self, after: int) -> int:
        while self._revision <= after:
            await self._news.wait()
        return self._revision

    async def call(self, server: str, tool: str, arguments: JsonObject, check: Check | None = None) -> CallResult:
        spec = self._ready(server)
        if not spec.offers(tool):
            raise NotFound(f"the config file leaves {tool} of {server} out")
        if check is not None:
            await check()
        return self._answer(server, tool, arguments)

    async def request(
        self, server: str, method: str, params: JsonObject, check: Check | None = None
    ) -> JsonObject:
        """Answer with what was asked, and of whom."""
        name = self._ready(server).name
        if check is not None:
            await check()
        return {"server": name, "method": method, "params": dict(params)}

    def update(self, server: str, uri: str) -> None:
        """Tell those that watch this resource."""
        for tell in self._watching.get((server, uri), ()):
            tell()

    async def watch(self, server: str, uri: str, tell: Callable[[], None]) -> None:
        watching = self._watching.setdefault((self._ready(server).name, uri), [])
        watching.append(tell)
        try:
            await asyncio.Event().wait()
        finally:
            watching.remove(tell)

    def _ready(self, server: str) -> ServerSpec:
        spec = self._specs.get(server)
        if spec is None:
            names = ", ".join(sorted(self._specs)) or "none"
            raise NotFound(f"there is no server {server}", hint=f"the servers are: {names}")
        state = self._state(spec)
        if state.status is not ServerStatus.READY:
            what = "has failed" if state.status is ServerStatus.FAILED else f"is {state.status}"
            raise ServerUnavailable(f"{server} {what}: {state.error}")
        return spec

    async def close(self) -> None:
        self._closed = True
        self._bump()

    def _state(self, spec: ServerSpec) -> ServerState:
        state = ServerState(spec.name, spec.transport, ServerStatus.STARTING)
        if self._closed:
            return replace(state, status=ServerStatus.STOPPED)
        if spec.name in self._fallen:
            return replace(state, status=ServerStatus.FAILED, error=self._fallen[spec.name])
        if spec.name not in self._has:
            return state
        kinds = [item.kind for item in self._items(spec)]
        tools, prompts, resources = (kinds.count(kind) for kind in ItemKind)
        return replace(state, status=ServerStatus.READY, tools=tools, prompts=prompts, resources=resources)

    def _items(self, spec: ServerSpec) -> tuple[Item, ...]:
        return tuple(
            item for item in self._has[spec.name] if item.kind is not ItemKind.TOOL or spec.offers(item.name)
        )

    def _bump(self) -> None:
        self._revision += 1
        news, self._news = self._news, asyncio.Event()
        news.set()
