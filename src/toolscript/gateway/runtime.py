"""A gateway in this process: opened for one command or for as long as it serves."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rapidfuzz import process

from toolscript.core.embedding.download_failures import MODEL_ALIASES, Refusals, model_folder
from toolscript.core.embedding.model_runtime import GAIN, is_installed, require_runtime
from toolscript.core.embedding.static_table import BUILTIN, StaticEmbedder
from toolscript.core.errors import ConfigInvalid, NotFound, NotReady, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject, is_allowed, split_tool_id, tool_id
from toolscript.core.mcp_client.model import (
    CallResult,
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolServers,
    short_error,
)
from toolscript.core.retrieval.curation import Curation
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.core.values import OnProgress, silent
from toolscript.core.version import __version__
from toolscript.gateway.activity import ActivityLog
from toolscript.gateway.approvals import HELD_UNTIL, Approvals, Decision, Review, Status, by_server, is_recent
from toolscript.gateway.callers import current_client, current_terms
from toolscript.gateway.capabilities import Capabilities, capabilities_of, default_capabilities
from toolscript.gateway.config.curation import curation_of
from toolscript.gateway.config.read import Config, ConfigPlace, left_out
from toolscript.gateway.config.rules import call_rules_of
from toolscript.gateway.discovery import place_of
from toolscript.gateway.entry_requests import EntryRequests
from toolscript.gateway.history import keeps_arguments, open_activity
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.listed_tools import ListedTools, ToolPage
from toolscript.gateway.model import PAGE, Change, EntryPage, Gateway, GatewayHealth, LocalAnswer, LocalQuery, Need
from toolscript.gateway.recording import RecordedGateway
from toolscript.gateway.rules import CallRules, Risk, require_allowed
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.settings import NO_MODEL, GatewaySettings, environment
from toolscript.gateway.store.approvals import ApprovalStore
from toolscript.gateway.store.offers import CachedOffers, Failed, OfferFile
from toolscript.gateway.typescript.module import typescript_module

if TYPE_CHECKING:
    from toolscript.core.mcp_client.servers import SharedServers
    from toolscript.core.mcp_client.supervision import Timing

MAX_SUGGESTED = 3
MAX_REASON = 160
MAX_REFUSAL = 200

REMEMBERED_SECONDS = 24 * 3600.0
FAILED_SECONDS = 600.0
WORTH_SAYING = 3600.0
# How long a command waits for slow servers once others have answered.
PATIENCE_SECONDS = 10.0
# How long the first search of a gateway that has just started waits for the first server.
FIRST_ANSWER_SECONDS = 10.0
# How long a decision waits for the index to follow it.
DECIDED_SECONDS = 10.0
# Listed here because the library that lists all models takes two seconds to import.
DEFAULT_MODELS = ("Xenova/bge-small-en-v1.5", "Xenova/all-MiniLM-L6-v2", "multilingual", BUILTIN, NO_MODEL)
T = TypeVar("T")

logger = logging.getLogger(__name__)


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
        if self._search.type_of(query) is SearchType.SEMANTIC:
            # A keyword answer would not be the semantic one that was requested.
            await self._indexing.until_embedded(self._patience)
        answer = await self._search.search(query)
        notes = self._held_note(), self._changed_note(answer), await self._not_searched_note(), self.note
        hint = "; ".join(filter(None, (answer.hint, *notes)))
        return replace(answer.with_risks(self.rules.risk), hint=hint)

    def curate(self, curation: Curation) -> None:
        """Apply these rules to searches from now on."""
        self._search.curation = curation

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
        """Shorten a server's error; keep the message of an invalid entry, which contains the fix."""
        if state.status is ServerStatus.STARTING:
            return "still starting"
        why = short_error(state.error)
        return why if state in self.left_out else why[:MAX_REASON]

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
        return await asyncio.to_thread(typescript_module, items, compact=compact)

    async def call(self, tool: str, arguments: JsonObject) -> CallResult:
        server, name = split_tool_id(tool)
        await self._wait_for_start(server)
        item = self._offered(server, name)
        if item is None:
            raise self._not_found(server, name)
        if self._indexing.approvals is not None:
            await asyncio.to_thread(self._indexing.approvals.require, item)
        self._require_allowed(item, confirmed=current_terms().confirmed in (tool, tool_id(server, name)))
        try:
            return await self._servers.call(server, name, arguments)
        except ServerUnavailable as error:
            error.details.setdefault("server", server)
            raise

    async def listed_tools(self, after: str = "") -> ToolPage:
        await self._until_listed()
        return (await self._listed()).page(after)

    async def tool_named(self, name: str) -> str:
        item = (await self._listed()).find(name)
        if item is None:
            await self._until_listed()
            item = (await self._listed()).find(name)
        return tool_id(item.server, item.name) if item else ""

    async def _until_listed(self) -> None:
        """Wait for servers of which no tools are cached, right after the start and not later."""
        if (seconds := self._listed_by - time.monotonic()) > 0:
            await self._indexing.until_listed(seconds)

    async def _listed(self) -> ListedTools:
        index = self._search.index
        if "listed_tools" not in vars(index):
            # On a thread, once for each catalog: other requests must not wait.
            await asyncio.to_thread(lambda: index.listed_tools)
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

    def find_rules(self) -> Callable[[str, str], None] | None:
        """Return what checks a call by server and tool; None without rules."""
        return None if self.rules.is_empty else self.require_allowed

    def require_allowed(self, server: str, name: str) -> None:
        """Raise Forbidden for a call that the rules do not allow, also of a tool that is not known here."""
        unknown = Item(tool_id(server, name), ItemKind.TOOL, server, name)
        self._require_allowed(self._offered(server, name) or unknown)

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
            if state.name == server and not state.answers:
                what = "has failed" if state.status is ServerStatus.FAILED else f"is {state.status}"
                return ServerUnavailable(
                    f"the server {server} {what}: {state.error or 'unknown reason'}",
                    hint="`toolscript doctor` says how to fix it",
                    details={"server": server},
                )
        specs = {spec.name: spec for spec in self._indexing.specs}
        if server in specs and not specs[server].offers(name):
            return NotFound(f"the config file excludes {name} of {server} (includeTools, excludeTools)")
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


def _is_absent(state: ServerState, indexed_servers: Collection[str]) -> bool:
    return state.status is ServerStatus.FAILED or (
        state.status is ServerStatus.STARTING and state.name not in indexed_servers
    )


def _first_names(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MAX_SUGGESTED} more"] if len(names) > MAX_SUGGESTED else []
    return ", ".join([*names[:MAX_SUGGESTED], *more])


def _refused_note(refused: Sequence[str]) -> str:
    """Describe refused tools: they must not look as if the server did not have them."""
    return f"{len(refused)} left out; {refused[0][:MAX_REFUSAL]}"


async def run_alone(
    action: Callable[[Gateway], Awaitable[T]], settings: GatewaySettings, need: Need, on_progress: OnProgress
) -> T:
    async with _open_alone(settings, need, on_progress) as resources:
        return await action(resources.recorded)


@asynccontextmanager
async def open_alone(
    settings: GatewaySettings, need: Need, on_progress: OnProgress
) -> AsyncIterator[LocalGateway]:
    """Open a gateway for one command: start the servers without a cached offer, and wait until all is indexed."""
    async with _open_alone(settings, need, on_progress) as resources:
        yield resources.gateway


@asynccontextmanager
async def _open_alone(
    settings: GatewaySettings, need: Need, on_progress: OnProgress
) -> AsyncIterator["Resources"]:
    config = read_settings(settings)
    specs = [spec for spec in config.servers if need.only_server in (None, spec.name)]
    cached = _recall(settings, config, need)
    not_started = {offer.server for offer in cached.offers}
    failed = failed_before(specs, cached.failed)
    # With nothing to search there is nothing to load a model for.
    async with open_resources(settings, on_progress, model=need.model and bool(config.servers)) as resources:
        resources.gateway.curate(read_curation(config))
        resources.gateway.rules = read_call_rules(config, resources.gateway.is_approved)
        resources.gateway.left_out = left_out(config)
        resources.gateway.note = _age_note(cached.age) if cached.offers else ""
        if need.uses_cache:
            resources.gateway.left_out += failed
            not_started |= {state.name for state in failed}
        resources.gateway.failed_before = {state.name: state.error for state in failed}
        resources.servers.use([spec for spec in specs if spec.name not in not_started])
        resources.indexing.use(config.servers, cached.offers)
        await resources.settled(PATIENCE_SECONDS, not_for=cached.failed)
        yield resources


def _recall(settings: GatewaySettings, config: Config, need: Need) -> CachedOffers:
    """Return cached offers; none for `refresh` or a single server, which need live data."""
    if need.refresh or need.only_server or settings.search_no_cache:
        return CachedOffers()
    offer_file = OfferFile(cache_folder(settings) / "tools", config.servers)
    return offer_file.recall(REMEMBERED_SECONDS if need.uses_cache else 0.0, FAILED_SECONDS)


def failed_before(specs: Sequence[ServerSpec], failed: Mapping[str, Failed]) -> list[ServerState]:
    """Return servers that failed recently and are not retried yet: a hanging one would delay every command."""
    return [
        ServerState(
            spec.name,
            spec.transport,
            ServerStatus.FAILED,
            f"{failed[spec.name].reason}; tried {_ago(failed[spec.name].age)}, `search --refresh` tries again",
        )
        for spec in specs
        if spec.name in failed
    ]


@dataclass(frozen=True)
class Resources:
    """`recorded` is the gateway whose searches and calls are in the activity log: the one for clients."""

    servers: ToolServers
    indexing: Indexing
    gateway: LocalGateway
    working: asyncio.Task[None]
    activity: ActivityLog
    recorded: RecordedGateway

    async def settled(self, patience: float, not_for: Collection[str] = ()) -> None:
        """Wait until indexing has settled; raise if its task fails first."""
        settled = asyncio.ensure_future(self.indexing.settled(patience, not_for))
        await asyncio.wait({settled, self.working}, return_when=asyncio.FIRST_COMPLETED)
        if self.working.done():
            settled.cancel()
            self.working.result()


@asynccontextmanager
async def open_resources(
    settings: GatewaySettings,
    on_progress: OnProgress,
    *,
    model: bool = True,
    at_once: bool = False,
    shared: "Shared | None" = None,
) -> AsyncIterator[Resources]:
    """Open a running gateway without servers. `at_once`: the built-in model answers until its own is ready, and
    servers sleep while they are not needed. Servers and models that are `shared` stay open after it.
    """
    if model:
        require_model(settings)
    from toolscript.core.mcp_client.servers import McpServers

    weights = RankingWeights(meaning=settings.search_alpha)
    search = LocalSearch(_capabilities(settings), weights, SearchType(settings.search_type))
    timing = timing_of(settings) if at_once else None
    servers = McpServers(timing, shared=shared.servers if shared else None)
    models = shared.models if shared else None
    indexing = make_indexing(settings, servers, search, on_progress, model=model, at_once=at_once, models=models)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.close)
        working = asyncio.create_task(indexing.run())
        stack.push_async_callback(_cancel, working)
        gateway = LocalGateway(
            servers,
            search,
            indexing,
            settings.search_model,
            patience=FIRST_ANSWER_SECONDS,
            starts_all=at_once,
        )
        activity = shared.activity if shared else await stack.enter_async_context(open_activity(settings))
        recorded = _recorded(settings, gateway, activity, indexing)
        yield Resources(servers, indexing, gateway, working, activity, recorded)


def _recorded(
    settings: GatewaySettings, gateway: LocalGateway, activity: ActivityLog, indexing: Indexing
) -> RecordedGateway:
    return RecordedGateway(
        gateway,
        activity,
        arguments=keeps_arguments(settings),
        find_server=indexing.spec_named,
        server_of=gateway.server_of,
    )


class Models:
    """The embedding models of a gateway, each loaded once. A failure is not kept: the next load tries again."""

    def __init__(self, settings: GatewaySettings, on_progress: OnProgress) -> None:
        self._settings = settings
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._model: Embedder | None = None
        self._fallback: Embedder | None = None

    def load(self) -> Embedder:
        with self._lock:
            if self._model is None:
                self._model = load_embedder(self._settings, self._on_progress)
            return self._model

    def load_fallback(self) -> Embedder:
        with self._lock:
            if self._fallback is None:
                self._fallback = StaticEmbedder()
            return self._fallback


@dataclass(frozen=True)
class Shared:
    """What the workspaces of one gateway share: servers with the same entry, models, and the log."""

    servers: "SharedServers"
    models: Models
    activity: ActivityLog


@asynccontextmanager
async def open_shared(settings: GatewaySettings) -> AsyncIterator[Shared]:
    from toolscript.core.mcp_client.servers import SharedServers

    servers = SharedServers(timing_of(settings))
    async with open_activity(settings) as activity:
        try:
            yield Shared(servers, Models(settings, silent), activity)
        finally:
            await servers.close()


def timing_of(settings: GatewaySettings) -> "Timing":
    from toolscript.core.mcp_client.supervision import Timing

    return Timing(idle=settings.gateway_idle_seconds or math.inf)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def make_indexing(
    settings: GatewaySettings,
    servers: ToolServers,
    search: LocalSearch,
    on_progress: OnProgress,
    *,
    model: bool = True,
    at_once: bool = False,
    models: "Models | None" = None,
) -> Indexing:
    models = models or Models(settings, on_progress)
    embeds = model and settings.search_model != NO_MODEL
    has_fallback = embeds and settings.search_model != BUILTIN
    if has_fallback and at_once:
        search.model_note = f"{settings.search_model} is still loading, or being downloaded once; it {GAIN}"
    return Indexing(
        servers,
        search,
        load_embedder=models.load if embeds else None,
        load_fallback=models.load_fallback if has_fallback else None,
        fallback_first=has_fallback and at_once,
        cache=None if settings.search_no_cache else cache_folder(settings),
        on_progress=on_progress,
        approvals=approval_store(settings),
    )


def approval_store(settings: GatewaySettings) -> ApprovalStore:
    folder = settings.data_folder / "approvals"
    return ApprovalStore(folder, Approvals(settings.gateway_approvals), ConfigPlace().own_file)


def load_embedder(settings: GatewaySettings, on_progress: OnProgress = silent, *, again: bool = False) -> Embedder:
    """`again`: retry a download that failed a short while ago."""
    if settings.search_model == BUILTIN:
        return StaticEmbedder()
    require_runtime(settings.search_model)
    downloads = settings.data_folder / "models"
    if not again and model_folder(settings.search_model) is None:
        Refusals(downloads).check(MODEL_ALIASES.get(settings.search_model, settings.search_model))
    from toolscript.core.embedding.cache import CachedEmbedder
    from toolscript.core.embedding.embedder import LocalEmbedder
    from toolscript.core.embedding.engine import Device

    model = LocalEmbedder(
        settings.search_model,
        device=Device(settings.search_device),
        downloads=downloads,
        on_progress=on_progress,
    )
    return CachedEmbedder(model, size=1024)


def require_model(settings: GatewaySettings) -> None:
    """Raise for an unknown model name. Where a model cannot be reached or run, the built-in one is used."""
    if not is_installed():
        if settings.search_device == "gpu":
            require_runtime(settings.search_model)
        return
    if model_folder(settings.search_model) is None and settings.search_model not in DEFAULT_MODELS:
        from toolscript.core.embedding.fastembed_models import known_name

        known_name(settings.search_model)
    if settings.search_device == "gpu":
        from toolscript.core.embedding.engine import Device, providers_for

        providers_for(Device.GPU)


def require_usable(settings: GatewaySettings) -> None:
    """Raise what would keep a gateway with these settings from opening: a malformed config, an unknown model."""
    read_settings(settings)
    _capabilities(settings)
    require_model(settings)


def read_settings(settings: GatewaySettings) -> Config:
    return place_of(settings).read_and_warn(environment())


def read_curation(config: Config) -> Curation:
    """Return the rules of the config files; log those that have no effect."""
    curation, problems = curation_of(config)
    for problem in problems:
        logger.warning(str(problem))
    return curation


def read_call_rules(config: Config, is_approved: Callable[[Item], bool]) -> CallRules:
    """Return the rules about calls; log those that have a mistake."""
    own, of_project, problems = call_rules_of(config)
    for problem in problems:
        logger.warning(str(problem))
    return CallRules(own, of_project, is_approved)


def cache_folder(settings: GatewaySettings) -> Path:
    return settings.data_folder / "cache"


def _capabilities(settings: GatewaySettings) -> Capabilities:
    own = settings.data_folder / "capabilities.toml"
    try:
        return capabilities_of(own.read_text("utf-8")) if own.is_file() else default_capabilities()
    except (OSError, ValueError, ConfigInvalid) as error:
        raise ConfigInvalid(f"{own}: {error}", hint="correct the file or remove it") from error


def _age_note(seconds: float) -> str:
    """Return a note on the cache's age once it is old enough to matter."""
    return (
        f"tools as they were {_ago(seconds)}; --refresh queries the servers again"
        if seconds > WORTH_SAYING
        else ""
    )


def _ago(seconds: float) -> str:
    minutes = round(seconds / 60)
    return "a moment ago" if minutes < 1 else f"{minutes} min ago" if minutes < 120 else f"{minutes // 60} h ago"
