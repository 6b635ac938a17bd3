"""A gateway in this process: opened for one command or for as long as it serves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rapidfuzz import process

from toolscript.core.embedding.download_failures import OTHER_NAMES, Refusals, model_folder
from toolscript.core.errors import ConfigInvalid, NotFound, NotReady, ServerUnavailable
from toolscript.core.items import Item, ItemKind, JsonObject, is_wanted, split_tool_id, tool_id
from toolscript.core.mcp_client.model import (
    CallResult,
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolServers,
    in_short,
)
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.core.values import OnProgress, silent
from toolscript.core.version import __version__
from toolscript.gateway.capabilities import Capabilities, capabilities_of, default_capabilities
from toolscript.gateway.config.read import Config, left_out
from toolscript.gateway.discovery import place_of
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.model import Gateway, GatewayHealth, LocalAnswer, LocalQuery, Need
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.settings import GatewaySettings, environment
from toolscript.gateway.store.offers import CachedOffers, Failed, OfferFile, ToolChange
from toolscript.gateway.typescript.module import typescript_module

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
# Known without asking the library that has the list of all: it takes two seconds to import.
DEFAULT_MODELS = ("Xenova/bge-small-en-v1.5", "Xenova/all-MiniLM-L6-v2")
T = TypeVar("T")


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
        changed = {(change.server, change.tool) for change in self._indexing.changes()}
        names = [tool_id(*key) for hit in answer.hits if (key := (hit.item.server, hit.item.name)) in changed]
        return f"changed by their servers lately: {_some(names)} (`toolscript doctor` shows how)" if names else ""

    async def _not_searched(self) -> str:
        """A tool that is missing because its server is must not look like one that does not exist."""
        not_ready = [state for state in await self.servers() if state.status is not ServerStatus.READY]
        if not not_ready:
            return ""
        found = {item.server for item in self._search.index.items}
        absent: dict[str, list[str]] = {}
        for state in not_ready:
            if _is_absent(state, found):
                absent.setdefault(self._why_absent(state), []).append(state.name)
        named = [f"{_some(names)} ({why})" for why, names in [*absent.items()][:MAX_SUGGESTED]]
        more = [f"and {len(absent) - MAX_SUGGESTED} more"] if len(absent) > MAX_SUGGESTED else []
        return f"not searched: {', '.join([*named, *more])}" if absent else ""

    def _why_absent(self, state: ServerState) -> str:
        """What a server says may be long; what is wrong with its entry says what to do about it."""
        if state.status is ServerStatus.STARTING:
            return "still starting"
        why = in_short(state.error)
        return why if state in self.left_out else why[:MAX_REASON]

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
            replace(server_state, error=server_state.error or _refusal(refused[server_state.name]))
            if server_state.name in refused
            else server_state
            for server_state in map(self._as_known, self._servers.states())
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
            nearest = [match[0] for match in process.extract(server, names, limit=MAX_SUGGESTED)]
            return NotFound(
                f"there is no server {server[:100]!r}",
                hint=f"there is {', '.join(nearest)}",
                details={"nearest": nearest},
            )
        known = [
            tool_id(item.server, item.name) for item in self._search.index.items if item.kind is ItemKind.TOOL
        ]
        nearest = [match[0] for match in process.extract(tool_id(server, name), known, limit=MAX_SUGGESTED)]
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
    more = [f"and {len(names) - MAX_SUGGESTED} more"] if len(names) > MAX_SUGGESTED else []
    return ", ".join([*names[:MAX_SUGGESTED], *more])


def _refusal(refused: Sequence[str]) -> str:
    """A tool that cannot be used must not look like one that its server does not have."""
    return f"{len(refused)} left out; {refused[0][:MAX_REFUSAL]}"


async def run_alone(
    action: Callable[[Gateway], Awaitable[T]], settings: GatewaySettings, need: Need, on_progress: OnProgress
) -> T:
    async with open_alone(settings, need, on_progress) as gateway:
        return await action(gateway)


@asynccontextmanager
async def open_alone(
    settings: GatewaySettings, need: Need, on_progress: OnProgress
) -> AsyncIterator[LocalGateway]:
    """Starts the servers that have to be asked, and has everything ready before it hands the gateway over."""
    config = read_settings(settings)
    specs = [spec for spec in config.servers if need.only_server in (None, spec.name)]
    cached = _recall(settings, config, need)
    known = {offer.server for offer in cached.offers}
    failed = _failed_before(specs, cached.failed)
    # With nothing to search there is nothing to load a model for.
    async with open_resources(settings, on_progress, model=need.model and bool(config.servers)) as parts:
        parts.gateway.left_out = left_out(config)
        parts.gateway.note = _age_note(cached.age) if cached.offers else ""
        if need.remembers:
            parts.gateway.left_out += failed
            known |= {state.name for state in failed}
        parts.gateway.failed_before = {state.name: state.error for state in failed}
        parts.servers.use([spec for spec in specs if spec.name not in known])
        parts.indexing.use(config.servers, cached.offers)
        await parts.settled(PATIENCE_SECONDS, not_for=cached.failed)
        yield parts.gateway


def _recall(settings: GatewaySettings, config: Config, need: Need) -> CachedOffers:
    """What need not be asked again. Who asks for fresh tools, or for one server, waits for what there is."""
    if need.refresh or need.only_server or settings.search_no_cache:
        return CachedOffers()
    memory = OfferFile(cache_folder(settings) / "tools", config.servers)
    return memory.recall(REMEMBERED_SECONDS if need.remembers else 0.0, FAILED_SECONDS)


def _failed_before(specs: Sequence[ServerSpec], failed: Mapping[str, Failed]) -> list[ServerState]:
    """Servers that are not asked again so soon: one that hangs would take as long every time."""
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
    servers: ToolServers
    indexing: Indexing
    gateway: LocalGateway
    working: asyncio.Task[None]

    async def settled(self, patience: float, not_for: Collection[str] = ()) -> None:
        """Waits for all that is on its way; what ends the work ends the wait."""
        settled = asyncio.ensure_future(self.indexing.settled(patience, not_for))
        await asyncio.wait({settled, self.working}, return_when=asyncio.FIRST_COMPLETED)
        if self.working.done():
            settled.cancel()
            self.working.result()

    def spec_named(self, name: str) -> ServerSpec | None:
        return next((spec for spec in self.indexing.specs if spec.name == name), None)


@asynccontextmanager
async def open_resources(
    settings: GatewaySettings, on_progress: OnProgress, *, model: bool = True
) -> AsyncIterator[Resources]:
    """A gateway at work, with no servers yet."""
    if model:
        require_model(settings)
    from toolscript.core.mcp_client.servers import McpServers

    weights = RankingWeights(meaning=settings.search_alpha)
    search = LocalSearch(_capabilities(settings), weights, SearchType(settings.search_type))
    servers = McpServers()
    indexing = make_indexing(settings, servers, search, on_progress, model=model)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.close)
        working = asyncio.create_task(indexing.run())
        stack.push_async_callback(_end, working)
        gateway = LocalGateway(servers, search, indexing, settings.search_model, patience=FIRST_ANSWER_SECONDS)
        yield Resources(servers, indexing, gateway, working)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def make_indexing(
    settings: GatewaySettings,
    servers: ToolServers,
    search: LocalSearch,
    on_progress: OnProgress,
    *,
    model: bool = True,
) -> Indexing:
    return Indexing(
        servers,
        search,
        load_embedder=(lambda: load_embedder(settings, on_progress)) if model else None,
        cache=None if settings.search_no_cache else cache_folder(settings),
        on_progress=on_progress,
    )


def load_embedder(settings: GatewaySettings, on_progress: OnProgress = silent, *, again: bool = False) -> Embedder:
    """`again`: also where a download was refused a short while ago."""
    downloads = settings.data_folder / "models"
    if not again and model_folder(settings.search_model) is None:
        Refusals(downloads).check(OTHER_NAMES.get(settings.search_model, settings.search_model))
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
    """What was asked for by name and does not exist is not replaced by words alone, as a model out of reach is."""
    if model_folder(settings.search_model) is None and settings.search_model not in DEFAULT_MODELS:
        from toolscript.core.embedding.fastembed_models import known_name

        known_name(settings.search_model)
    if settings.search_device == "gpu":
        from toolscript.core.embedding.engine import Device, providers_for

        providers_for(Device.GPU)


def read_settings(settings: GatewaySettings) -> Config:
    return place_of(settings).read_and_warn(environment())


def cache_folder(settings: GatewaySettings) -> Path:
    return settings.data_folder / "cache"


def _capabilities(settings: GatewaySettings) -> Capabilities:
    own = settings.data_folder / "capabilities.toml"
    try:
        return capabilities_of(own.read_text("utf-8")) if own.is_file() else default_capabilities()
    except (OSError, ValueError, ConfigInvalid) as error:
        raise ConfigInvalid(f"{own}: {error}", hint="mend the file or remove it") from error


def _age_note(seconds: float) -> str:
    """Only of what may have changed meanwhile: a note on every answer is read on none."""
    return (
        f"tools as they were {_ago(seconds)}; --refresh asks the servers again" if seconds > WORTH_SAYING else ""
    )


def _ago(seconds: float) -> str:
    minutes = round(seconds / 60)
    return "a moment ago" if minutes < 1 else f"{minutes} min ago" if minutes < 120 else f"{minutes // 60} h ago"
