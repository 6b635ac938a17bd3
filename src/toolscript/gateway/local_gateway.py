"""The gateway in this process: it searches, calls and lists what the servers offer."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from rapidfuzz import process

from toolscript.core.argument_checks import require_arguments_in_time
from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import Forbidden, NotFound, NotReady, ServerUnavailable
from toolscript.core.items import SEPARATOR, Item, ItemKind, JsonObject, is_allowed, split_tool_id, tool_id
from toolscript.core.mcp_client.model import (
    SAID_PREFIX,
    CallResult,
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolServers,
    sign_in_needed,
    without_server_output,
)
from toolscript.core.retrieval.curation import Curation
from toolscript.core.retrieval.query import SearchType
from toolscript.core.text import readable
from toolscript.core.version import __version__
from toolscript.gateway.approvals import HELD_UNTIL, Decision, Review, Status, by_server, is_recent
from toolscript.gateway.callers import current_client, current_terms
from toolscript.gateway.entry_requests import EntryRequests
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.listed_tools import ListedTools, ToolPage
from toolscript.gateway.model import (
    EXCLUDED,
    EXCLUDES,
    PAGE,
    Change,
    EntryPage,
    GatewayHealth,
    LocalAnswer,
    LocalHit,
    LocalQuery,
)
from toolscript.gateway.rules import CONFIRMATION, CallRules, Effect, Risk, require_allowed
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.twins import differing_arguments
from toolscript.gateway.typescript.module import typescript_module

MAX_SUGGESTED = 3
MAX_REASON = 160
MAX_REFUSAL = 200
WHY_IN_A_TERMINAL = "`toolscript list-servers` in a terminal shows what it said"

# How long a search waits for the tools of a server that has just answered.
ANSWERED_SECONDS = 2.0
# How long a decision waits for the index to follow it.
DECIDED_SECONDS = 10.0


class LocalGateway:
    """Implements the port `Gateway`. `left_out` are servers whose config entry is invalid.

    Right after the start, a search waits up to `patience` seconds for the first server, as a call waits for its
    own, and as long for the model if the search is semantic.
    """

    def __init__(
        self,
        servers: ToolServers,
        search: LocalSearch,
        indexing: Indexing,
        model: str,
        *,
        patience: float = 0.0,
        starts_all: bool = False,
    ) -> None:
        self._servers = servers
        self._search = search
        search.may_guess = self._may_guess
        self._indexing = indexing
        self._entries = EntryRequests(servers, search, indexing, self._wait_for_start)
        self._model = model
        self._patience = patience
        self._listed_by = time.monotonic() + patience
        # A gateway for one command starts only the servers that it needs.
        self._starts_all = starts_all
        self.left_out: Sequence[ServerState] = ()
        self.failed_before: Mapping[str, str] = {}
        self.note = ""
        self.rules = CallRules()

    async def search(self, query: LocalQuery) -> LocalAnswer:
        if not await self._indexing.until_ready(self._patience):
            raise NotReady(
                "the search engine is not ready: no server has answered yet", hint="try again in a moment"
            )
        # Nothing in the answer would say that a server which has just answered is missing.
        await self._indexing.until_searched(ANSWERED_SECONDS)
        if self._search.type_of(query) is SearchType.SEMANTIC:
            # A keyword answer would not be the semantic one that was requested.
            await self._indexing.until_embedded(self._patience)
        answer = self._with_paths(await self._search.search(query))
        notes = (
            self._excluded_note(query.text),
            self._held_note(),
            self._changed_note(answer),
            await self._not_searched_note(),
            self.note,
        )
        hint = "; ".join(filter(None, (answer.hint, *notes)))
        return replace(answer.with_risks(self.rules.risk), hint=hint)

    def _with_paths(self, answer: LocalAnswer) -> LocalAnswer:
        """Return the answer with what tells the servers of twins apart."""
        commands = {spec.name: _without_secrets(spec) for spec in self._indexing.specs if spec.command}

        def told_apart(hits: tuple[LocalHit, ...]) -> tuple[LocalHit, ...]:
            return tuple(_told_apart(hit, commands) if hit.also else hit for hit in hits)

        steps = tuple(
            replace(step, hits=told_apart(step.hits), near_misses=told_apart(step.near_misses))
            for step in answer.steps
        )
        return replace(
            answer, hits=told_apart(answer.hits), near_misses=told_apart(answer.near_misses), steps=steps
        )

    def _may_guess(self, item: Item) -> bool:
        return self.rules.is_empty or self.rules.decide(item, current_client()).effect is not Effect.DENY

    def curate(self, curation: Curation) -> None:
        """Apply these rules to searches from now on."""
        self._search.curation = curation

    def _excluded_note(self, text: str) -> str:
        """Say of a tool that is searched by its name that the config file excludes it."""
        server, separator, name = text.rpartition(SEPARATOR)
        if not name or not name.isidentifier() or (not separator and "_" not in name):
            return ""
        for spec in self._indexing.specs:
            by_pattern = any(fnmatchcase(name, pattern) for pattern in spec.exclude_tools)
            if (spec.name == server and not spec.offers(name)) or (not server and by_pattern):
                return _excluded_note(spec.name, name)
        return ""

    def _held_note(self) -> str:
        """Say that tools are held, without their names, which a server chose, and without a command for agents."""
        held = [review for review in self._indexing.reviews() if review.held and review.waits]
        return f"{HELD_UNTIL}: {by_server(held)}" if held else ""

    def _changed_note(self, answer: LocalAnswer) -> str:
        """Name hits that are shown, and whose definition changed since it was approved."""
        changed = {
            review.tool
            for review in self._indexing.reviews()
            if review.status is Status.CHANGED and not review.held and is_recent(review)
        }
        ids = [tool_id(hit.item.server, hit.item.name) for hit in answer.hits]
        names = [name for name in ids if name in changed]
        return f"changed by their servers since they were approved: {_first_names(names)}" if names else ""

    async def _not_searched_note(self) -> str:
        """Name the servers that are down: their tools must not look as if they did not exist."""
        not_ready = [state for state in await self.servers() if not state.answers]
        if not not_ready:
            return ""
        indexed_servers = {item.server for item in self._search.index.items}
        absent: dict[str, list[str]] = {}
        for state in not_ready:
            if _is_absent(state, indexed_servers):
                absent.setdefault(self._absence_reason(state), []).append(state.name)
        described = [f"{_first_names(names)} ({why})" for why, names in [*absent.items()][:MAX_SUGGESTED]]
        more = [f"and {len(absent) - MAX_SUGGESTED} more"] if len(absent) > MAX_SUGGESTED else []
        return f"not searched: {', '.join([*described, *more])}" if absent else ""

    def _absence_reason(self, state: ServerState) -> str:
        """Return the message of an invalid entry, which contains the fix. What a server said no agent may read."""
        if state.status is ServerStatus.STARTING:
            return "still starting"
        if state.status is ServerStatus.SIGN_IN_NEEDED:
            return f"{state.status}; {state.error}"
        if state in self.left_out:
            return state.error
        why = without_server_output(state.error)
        return why[:MAX_REASON] if why == state.error else f"{why[:MAX_REASON]}; {WHY_IN_A_TERMINAL}"

    async def items(self, wanted: tuple[str, ...] = ()) -> Sequence[Item]:
        names = frozenset(wanted)
        return [item for item in self._search.index.items if is_allowed(item.server, item.name, names)]

    async def typescript(self, wanted: tuple[str, ...] = (), *, compact: bool = False) -> str:
        items = [item for item in await self.items(wanted) if item.kind is ItemKind.TOOL]
        if wanted and not items:
            raise NotFound(
                f"nothing here is called {', '.join(wanted)[:200]}",
                hint="name servers and server__tool; `toolscript list-tools` lists them",
            )
        return await OF_SERVERS.run(lambda: typescript_module(items, compact=compact))

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        server, name = split_tool_id(await self._full_id(tool))
        await self._wait_for_start(server)
        checked: list[Item] = []

        async def check() -> None:
            item = self._offered(server, name)
            if item is None:
                raise self._not_found(server, name)
            if item not in checked:
                await self._require_callable(item, arguments, confirmed=confirmed)
                checked.append(item)

        confirmed = current_terms().confirmed in (tool, tool_id(server, name))
        # A call that is refused wakes no server, and one that is woken may have changed the tool.
        await check()
        try:
            return await self._servers.call(server, name, arguments, check)
        except ServerUnavailable as error:
            error.details.setdefault("server", server)
            raise

    async def _full_id(self, tool: str) -> str:
        """Return the id of a tool that is named without its server, where only one server has such a tool."""
        if SEPARATOR in tool:
            return tool
        await self._indexing.until_ready(self._patience)
        name = readable(tool)
        if (only := (await self._listed()).find(name)) is not None:
            return tool_id(only.server, only.name)
        items = (item for item in self._search.index.items if item.kind is ItemKind.TOOL and item.name == name)
        if ids := [tool_id(item.server, item.name) for item in items]:
            raise NotFound(
                f"several servers have a tool {name[:100]}",
                hint=f"name one: {_first_names(ids)}",
                details={"nearest": ids[:MAX_SUGGESTED]},
            )
        return tool

    async def _require_callable(self, item: Item, arguments: JsonObject, *, confirmed: bool) -> None:
        """Raise what keeps a call from being made. No person is asked about one whose arguments are wrong."""
        if self._indexing.approvals is not None:
            await asyncio.to_thread(self._indexing.approvals.require, item)
        try:
            self._require_allowed(item, confirmed=confirmed)
        except Forbidden as refusal:
            if CONFIRMATION in refusal.details:
                await require_arguments_in_time(item, arguments)
            raise
        await require_arguments_in_time(item, arguments)

    async def listed_tools(self, after: str = "") -> ToolPage:
        await self.until_listed()
        # On a thread: a page of definitions takes a while, and other requests must not wait.
        listed = await self._listed()
        return await OF_SERVERS.run(lambda: listed.page(after))

    async def tool_named(self, name: str) -> str:
        item = (await self._listed()).find(name)
        if item is None:
            await self.until_listed()
            item = (await self._listed()).find(name)
        return tool_id(item.server, item.name) if item else ""

    async def until_listed(self) -> None:
        """Wait for servers of which no tools are cached, right after the start and not later."""
        if (seconds := self._listed_by - time.monotonic()) > 0:
            await self._indexing.until_listed(seconds)

    async def _listed(self) -> ListedTools:
        index = self._search.index
        if "listed_tools" not in vars(index):
            # On a thread, once for each catalog: other requests must not wait.
            await OF_SERVERS.run(lambda: index.listed_tools)
        return index.listed_tools

    def input_schema(self, name: str) -> JsonObject | None:
        """Return the input schema of a tool by a name that is listed."""
        item = self._search.index.listed_tools.find(name)
        return item.input_schema if item else None

    async def entries(self, kind: str, cursor: str = "", limit: int = PAGE) -> EntryPage:
        return await self._entries.page(kind, cursor, limit)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        return await self._entries.send(method, params)

    async def watch(self, uris: Collection[str], tell: Callable[[Change], None]) -> None:
        await self._entries.watch(uris, tell)

    def server_of(self, method: str, params: JsonObject) -> str:
        """Return the server that a request for a prompt or resource goes to, empty if that is not known."""
        return self._entries.server_of(method, params)

    def _require_allowed(self, item: Item, *, confirmed: bool = False) -> None:
        max_risk = current_terms().max_risk
        limit = Risk(max_risk) if max_risk else None
        require_allowed(self.rules.decide(item, current_client()), item, confirmed=confirmed, limit=limit)

    async def servers(self) -> Sequence[ServerState]:
        refused = {offer.server: offer.refused for offer in self._servers.offers() if offer.refused}
        states = [
            replace(server_state, error=server_state.error or _refused_note(refused[server_state.name]))
            if server_state.name in refused
            else server_state
            for server_state in map(self._with_earlier_failure, self._states())
        ]
        return sorted([*states, *self.left_out], key=lambda state: state.name)

    def _states(self) -> Sequence[ServerState]:
        """Return the states of all configured servers, also of those that are about to be started."""
        states = self._servers.states()
        known = {state.name for state in states}
        about_to_start = [
            ServerState(spec.name, spec.transport, ServerStatus.STARTING)
            for spec in self._indexing.specs
            if spec.name not in known and self._starts_all
        ]
        return [*states, *about_to_start]

    def _with_earlier_failure(self, state: ServerState) -> ServerState:
        """Report a server that failed before and has not answered yet as failed."""
        if state.status is not ServerStatus.STARTING or state.name not in self.failed_before:
            return state
        return replace(state, status=ServerStatus.FAILED, error=self.failed_before[state.name])

    async def reviews(self) -> Sequence[Review]:
        return self._indexing.reviews()

    async def decide(self, decision: Decision, digests: Sequence[str]) -> Sequence[Review]:
        decided = await self._indexing.decide(decision, digests)
        # What was approved is found by the next search.
        await self._indexing.until_embedded(DECIDED_SECONDS)
        return decided

    def is_approved(self, item: Item) -> bool:
        """Return whether the current definition of this item is the approved one."""
        return self._indexing.approvals is None or self._indexing.approvals.is_approved(item)

    async def health(self) -> GatewayHealth:
        return GatewayHealth(
            version=__version__,
            ready=self._indexing.ready,
            semantic=self._search.embedder is not None and self._search.index.model_is_used,
            model=BUILTIN if self._search.is_fallback else self._model,
            items=len(self._search.index),
            servers=tuple(await self.servers()),
            note=self._search.model_note,
            is_fallback=self._search.is_fallback,
        )

    def _offered(self, server: str, name: str) -> Item | None:
        offer = next((offer for offer in self._servers.offers() if offer.server == server), None)
        return offer.tools.get(name) if offer else None

    async def _wait_for_start(self, server: str) -> None:
        """Wait until the server has started; its start timeout bounds the wait."""
        revision = -1
        while self._is_starting(server):
            revision = await self._servers.changed(revision)

    def _is_starting(self, server: str) -> bool:
        """Starting, or about to be started: for the first time, or again after it has crashed once."""
        state = next((state for state in self._servers.states() if state.name == server), None)
        if state is None:
            return any(spec.name == server for spec in self._indexing.specs)
        return state.status is ServerStatus.STARTING or state.restarts

    def _not_found(self, server: str, name: str) -> NotFound | ServerUnavailable:
        for state in (*self._servers.states(), *self.left_out):
            if state.name == server and state.status is ServerStatus.SIGN_IN_NEEDED:
                return sign_in_needed(server)
            if state.name == server and not state.answers:
                what = "has failed" if state.status is ServerStatus.FAILED else f"is {state.status}"
                return ServerUnavailable(
                    f"the server {server} {what}: {without_server_output(state.error) or 'unknown reason'}",
                    hint="`toolscript doctor` says how to fix it",
                    details={"server": server},
                )
        specs = {spec.name: spec for spec in self._indexing.specs}
        if server in specs and not specs[server].offers(name):
            return NotFound(_excluded_note(server, name), details={EXCLUDED: True})
        names = [*specs]
        if names and server not in names:
            nearest = [match[0] for match in process.extract(server, names, limit=MAX_SUGGESTED)]
            return NotFound(
                f"there is no server {server[:100]!r}",
                hint=f"there is {', '.join(nearest)}",
                details={"nearest": nearest},
            )
        tool_ids = [
            tool_id(item.server, item.name) for item in self._search.index.items if item.kind is ItemKind.TOOL
        ]
        nearest = [match[0] for match in process.extract(tool_id(server, name), tool_ids, limit=MAX_SUGGESTED)]
        return NotFound(
            f"there is no tool {tool_id(server, name)[:200]}",
            hint=f"did you mean {', '.join(nearest)}?" if nearest else "no server offers a tool",
            details={"nearest": nearest},
        )


def _without_secrets(spec: ServerSpec) -> list[str]:
    secrets = [secret for secret in spec.secrets.values() if secret]
    return [part for part in (spec.command, *spec.args) if not any(secret in part for secret in secrets)]


def _told_apart(hit: LocalHit, commands: Mapping[str, Sequence[str]]) -> LocalHit:
    servers = [hit.item.server, *(name.partition(SEPARATOR)[0] for name in hit.also)]
    if any(server not in commands for server in servers):
        return hit
    return replace(hit, paths=differing_arguments({server: commands[server] for server in servers}))


def _excluded_note(server: str, name: str) -> str:
    return f"{EXCLUDES} {name[:100]} of {server} (includeTools, excludeTools)"


def _is_absent(state: ServerState, indexed_servers: Collection[str]) -> bool:
    return state.status in (ServerStatus.FAILED, ServerStatus.SIGN_IN_NEEDED) or (
        state.status is ServerStatus.STARTING and state.name not in indexed_servers
    )


def _first_names(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MAX_SUGGESTED} more"] if len(names) > MAX_SUGGESTED else []
    return ", ".join([*names[:MAX_SUGGESTED], *more])


def _refused_note(refused: Sequence[str]) -> str:
    """Describe refused tools: they must not look as if the server did not have them."""
    return f"{len(refused)} left out{SAID_PREFIX}{refused[0][:MAX_REFUSAL]}"
