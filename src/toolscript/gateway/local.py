"""The gateway in this process: the servers, the index that follows them, and the answers."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rapidfuzz import process

from toolscript import __version__
from toolscript.adapters.gateway_files import ToolChange
from toolscript.errors import NotFound, NotReady, ServerUnavailable
from toolscript.gateway.indexing import Indexing
from toolscript.model.gateway import GatewayHealth, LocalAnswer, LocalQuery
from toolscript.model.items import Item, ItemKind, JsonObject
from toolscript.model.queries import SearchType
from toolscript.model.servers import CallResult, ServerState, ServerStatus, in_short
from toolscript.model.tool_ids import is_wanted, split_tool_id, tool_id
from toolscript.ports import ToolServers
from toolscript.search.local import LocalSearch
from toolscript.surfaces.typescript import typescript_module

MOST_SUGGESTED = 3
MOST_OF_A_REASON = 160
MOST_OF_A_REFUSAL = 200


class LocalGateway:
    """Implements the port `Gateway`. `left_out` are servers whose entry in the config cannot be used.

    A search in the first moments waits up to `patience` seconds for the first server, as a call waits for its own,
    and as long for the model where the answer is to be made of meaning.
    """

    def __init__(
        self,
        servers: ToolServers,
        search: LocalSearch,
        indexing: Indexing,
        model: str,
        *,
        patience: float = 0.0,
    ) -> None:
        self._servers = servers
        self._search = search
        self._indexing = indexing
        self._model = model
        self._patience = patience
        self.left_out: Sequence[ServerState] = ()
        self.failed_before: Mapping[str, str] = {}
        self.note = ""

    async def search(self, query: LocalQuery) -> LocalAnswer:
        if not await self._indexing.until_ready(self._patience):
            raise NotReady(
                "the search engine is not ready: no server has answered yet", hint="try again in a moment"
            )
        if self._search.type_of(query) is SearchType.SEMANTIC:
            # Where it was asked for meaning alone, words alone would be another answer.
            await self._indexing.until_embedded(self._patience)
        answer = await self._search.search(query)
        hints = filter(None, (answer.hint, self._changed(answer), await self._not_searched(), self.note))
        return replace(answer, hint="; ".join(hints))

    def _changed(self, answer: LocalAnswer) -> str:
        """An approved tool that says something else one day is how servers turn on those who trust them."""
        changed = {(one.server, one.tool) for one in self._indexing.changes()}
        names = [tool_id(*key) for hit in answer.hits if (key := (hit.item.server, hit.item.name)) in changed]
        return f"changed by their servers lately: {_some(names)} (`toolscript doctor` shows how)" if names else ""

    async def _not_searched(self) -> str:
        """A tool that is missing because its server is must not look like one that does not exist."""
        not_ready = [one for one in await self.servers() if one.status is not ServerStatus.READY]
        if not not_ready:
            return ""
        found = {item.server for item in self._search.index.items}
        absent: dict[str, list[str]] = {}
        for one in not_ready:
            if _is_absent(one, found):
                absent.setdefault(self._why_absent(one), []).append(one.name)
        named = [f"{_some(names)} ({why})" for why, names in [*absent.items()][:MOST_SUGGESTED]]
        more = [f"and {len(absent) - MOST_SUGGESTED} more"] if len(absent) > MOST_SUGGESTED else []
        return f"not searched: {', '.join([*named, *more])}" if absent else ""

    def _why_absent(self, state: ServerState) -> str:
        """What a server says may be long; what is wrong with its entry says what to do about it."""
        if state.status is ServerStatus.STARTING:
            return "still starting"
        why = in_short(state.error)
        return why if state in self.left_out else why[:MOST_OF_A_REASON]

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        names = frozenset(wanted)
        return [item for item in self._search.index.items if is_wanted(item.server, item.name, names)]

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        items = [item for item in await self.items(wanted) if item.kind is ItemKind.TOOL]
        if wanted and not items:
            raise NotFound(
                f"nothing here is called {', '.join(wanted)[:200]}",
                hint="name servers and server__tool; `toolscript list-tools` lists them",
            )
        return await asyncio.to_thread(typescript_module, items, compact=compact)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        server, name = split_tool_id(tool)
        await self._has_started(server)
        if not self._offers(server, name):
            raise self._unknown(server, name)
        try:
            return await self._servers.call(server, name, arguments)
        except ServerUnavailable as error:
            error.details.setdefault("server", server)
            raise

    async def servers(self) -> Sequence[ServerState]:
        refused = {offer.server: offer.refused for offer in self._servers.offers() if offer.refused}
        states = [
            replace(one, error=one.error or _refusal(refused[one.name])) if one.name in refused else one
            for one in map(self._as_known, self._servers.states())
        ]
        return sorted([*states, *self.left_out], key=lambda state: state.name)

    def _as_known(self, state: ServerState) -> ServerState:
        """One that failed before and has not answered now has most likely failed again."""
        if state.status is not ServerStatus.STARTING or state.name not in self.failed_before:
            return state
        return replace(state, status=ServerStatus.FAILED, error=self.failed_before[state.name])

    def changes(self) -> Sequence[ToolChange]:
        return self._indexing.changes()

    async def health(self) -> GatewayHealth:
        return GatewayHealth(
            version=__version__,
            ready=self._indexing.ready,
            semantic=self._search.embedder is not None and self._search.index.model_is_used,
            model=self._model,
            items=len(self._search.index),
            servers=tuple(await self.servers()),
            note=self._search.why_words_alone,
        )

    def _offers(self, server: str, name: str) -> bool:
        return any(
            item.name == name and item.kind is ItemKind.TOOL
            for offer in self._servers.offers()
            if offer.server == server
            for item in offer.items
        )

    async def _has_started(self, server: str) -> None:
        """A server has a bounded time to start, so this waits no longer than that."""
        revision = -1
        while self._is_on_its_way(server):
            revision = await self._servers.changed(revision)

    def _is_on_its_way(self, server: str) -> bool:
        """Starting, or about to be started."""
        status = {state.name: state.status for state in self._servers.states()}.get(server)
        configured = any(spec.name == server for spec in self._indexing.specs)
        return status is ServerStatus.STARTING or (status is None and configured)

    def _unknown(self, server: str, name: str) -> NotFound | ServerUnavailable:
        for state in (*self._servers.states(), *self.left_out):
            if state.name == server and state.status is not ServerStatus.READY:
                return ServerUnavailable(
                    f"the server {server} is {state.status}: {state.error or 'no reason known'}",
                    hint="`toolscript list-servers` shows how the servers are doing",
                    details={"server": server},
                )
        specs = {spec.name: spec for spec in self._indexing.specs}
        if server in specs and not specs[server].offers(name):
            return NotFound(f"the config file leaves {name} of {server} out (includeTools, excludeTools)")
        names = [*specs]
        if names and server not in names:
            nearest = [match[0] for match in process.extract(server, names, limit=MOST_SUGGESTED)]
            return NotFound(
                f"there is no server {server[:100]!r}",
                hint=f"there is {', '.join(nearest)}",
                details={"nearest": nearest},
            )
        known = [
            tool_id(item.server, item.name) for item in self._search.index.items if item.kind is ItemKind.TOOL
        ]
        nearest = [match[0] for match in process.extract(tool_id(server, name), known, limit=MOST_SUGGESTED)]
        return NotFound(
            f"there is no tool {tool_id(server, name)[:200]}",
            hint=f"did you mean {', '.join(nearest)}?" if nearest else "no server offers a tool",
            details={"nearest": nearest},
        )


def _is_absent(state: ServerState, found: Collection[str]) -> bool:
    return state.status is ServerStatus.FAILED or (
        state.status is ServerStatus.STARTING and state.name not in found
    )


def _some(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MOST_SUGGESTED} more"] if len(names) > MOST_SUGGESTED else []
    return ", ".join([*names[:MOST_SUGGESTED], *more])


def _refusal(refused: Sequence[str]) -> str:
    """A tool that cannot be used must not look like one that its server does not have."""
    return f"{len(refused)} left out; {refused[0][:MOST_OF_A_REFUSAL]}"
