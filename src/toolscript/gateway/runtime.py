"""A gateway in this process: opened for one command or for as long as it serves."""

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolscript.core.embedding.download_failures import MODEL_ALIASES, Refusals, model_folder
from toolscript.core.embedding.model_runtime import GAIN, is_installed, require_runtime
from toolscript.core.embedding.static_table import BUILTIN, StaticEmbedder
from toolscript.core.errors import ConfigInvalid
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import (
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolServers,
)
from toolscript.core.mcp_client.oauth.tokens import SignIns
from toolscript.core.own_files import make_private
from toolscript.core.retrieval.curation import Curation
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.rewriting import Rewriter, default_rewriter, rewriter_with
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.core.values import OnProgress, silent
from toolscript.gateway.activity import ActivityLog
from toolscript.gateway.approvals import Approvals
from toolscript.gateway.capabilities import Capabilities, capabilities_of, default_capabilities
from toolscript.gateway.config.curation import curation_of
from toolscript.gateway.config.read import Config, ConfigPlace, left_out
from toolscript.gateway.config.rules import call_rules_of
from toolscript.gateway.config.trust import FOLDER as TRUSTED
from toolscript.gateway.discovery import place_of, with_secrets
from toolscript.gateway.history import keeps_arguments, open_activity
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.model import (
    Gateway,
    Need,
)
from toolscript.gateway.recording import RecordedGateway
from toolscript.gateway.rules import CallRules
from toolscript.gateway.search import LocalSearch
from toolscript.gateway.secret_store import open_secret_store
from toolscript.gateway.settings import NO_MODEL, GatewaySettings, environment
from toolscript.gateway.store.approvals import ApprovalStore
from toolscript.gateway.store.offers import CachedOffers, Failed, OfferFile

if TYPE_CHECKING:
    from toolscript.core.mcp_client.servers import SharedServers
    from toolscript.core.mcp_client.supervision import Timing

REMEMBERED_SECONDS = 24 * 3600.0
FAILED_SECONDS = 600.0
WORTH_SAYING = 3600.0
# How long a command waits for slow servers once others have answered.
PATIENCE_SECONDS = 10.0
# How long the first search of a gateway that has just started waits for the first server.
FIRST_ANSWER_SECONDS = 20.0
APPROVALS = "approvals"
# Listed here because the library that lists all models takes two seconds to import.
DEFAULT_MODELS = ("Xenova/bge-small-en-v1.5", "Xenova/all-MiniLM-L6-v2", "multilingual", BUILTIN, NO_MODEL)
T = TypeVar("T")

logger = logging.getLogger(__name__)


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
    with suppress(OSError):
        make_private(settings.data_folder)
    config = await asyncio.to_thread(read_settings, settings)
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
    sign_ins: SignIns

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
    search = LocalSearch(_capabilities(settings), weights, SearchType(settings.search_type), rewriter_of(settings))
    timing = timing_of(settings) if at_once else None
    sign_ins = shared.sign_ins if shared else sign_ins_of(settings)
    servers = McpServers(timing, shared=shared.servers if shared else None, sign_ins=sign_ins)
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
        yield Resources(servers, indexing, gateway, working, activity, recorded, sign_ins)


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
    """What the workspaces of one gateway share: servers with the same entry, sign-ins, models, and the log."""

    servers: "SharedServers"
    models: Models
    activity: ActivityLog
    sign_ins: SignIns


@asynccontextmanager
async def open_shared(settings: GatewaySettings) -> AsyncIterator[Shared]:
    from toolscript.core.mcp_client.servers import SharedServers

    sign_ins = sign_ins_of(settings)
    servers = SharedServers(timing_of(settings), sign_ins)
    async with open_activity(settings) as activity:
        try:
            yield Shared(servers, Models(settings, silent), activity, sign_ins)
        finally:
            await servers.close()


def sign_ins_of(settings: GatewaySettings) -> SignIns:
    folder = settings.data_folder
    return SignIns(folder / "sign-ins", lambda: open_secret_store(folder))


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
    return ApprovalStore(approvals_folder(), Approvals(settings.gateway_approvals), ConfigPlace().own_file)


def approvals_folder() -> Path:
    # Beside trust: a setting for another folder would be a new first look at every server.
    return ConfigPlace().own_file.parent / TRUSTED.with_name(APPROVALS)


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
    place_of(settings).read_and_warn(environment())
    require_tables(settings)
    require_model(settings)


def require_tables(settings: GatewaySettings) -> None:
    """Raise ConfigInvalid, which names the file, if a table that a person wrote cannot be read."""
    _capabilities(settings)
    rewriter_of(settings)


def read_settings(settings: GatewaySettings) -> Config:
    """Read the config with its secrets, which may take a while."""
    return with_secrets(place_of(settings), settings.data_folder).read_and_warn(environment())


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


def rewriter_of(settings: GatewaySettings) -> Rewriter:
    """Return the shipped tables by which requests are read, with what the file of a person adds."""
    own = settings.data_folder / "rewriting.toml"
    try:
        return rewriter_with(own.read_text("utf-8")) if own.is_file() else default_rewriter()
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
