"""Opens a gateway in this process, for one command or for as long as it serves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from toolscript.adapters.config_files import Config
from toolscript.adapters.config_files.here import left_out
from toolscript.adapters.gateway_files import Failed, OfferFile, Remembered
from toolscript.adapters.local_model.refusals import OTHER_NAMES, Refusals, model_folder
from toolscript.errors import ConfigInvalid
from toolscript.gateway.asking import Need, place_of
from toolscript.gateway.indexing import Indexing
from toolscript.gateway.local import LocalGateway
from toolscript.model.progress import OnProgress, silent
from toolscript.model.queries import SearchType
from toolscript.model.servers import ServerSpec, ServerState, ServerStatus
from toolscript.ports import Embedder, Gateway, ToolServers
from toolscript.search.local import Capabilities, LocalSearch, capabilities_of, default_capabilities
from toolscript.search.ranking import Recipe
from toolscript.settings.gateway import GatewaySettings, environment

REMEMBERED_SECONDS = 24 * 3600.0
FAILED_SECONDS = 600.0
WORTH_SAYING = 3600.0
# How long a command waits for slow servers once others have answered.
PATIENCE_SECONDS = 10.0
# How long the first search of a gateway that has just started waits for the first server.
FIRST_ANSWER_SECONDS = 10.0
# Known without asking the library that has the list of all: it takes two seconds to import.
USUAL_MODELS = ("Xenova/bge-small-en-v1.5", "Xenova/all-MiniLM-L6-v2")
T = TypeVar("T")


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
    remembered = _recall(settings, config, need)
    known = {offer.server for offer in remembered.offers}
    failed = _failed_before(specs, remembered.failed)
    # With nothing to search there is nothing to load a model for.
    async with open_parts(settings, on_progress, model=need.model and bool(config.servers)) as parts:
        parts.gateway.left_out = left_out(config)
        parts.gateway.note = _age_note(remembered.age) if remembered.offers else ""
        if need.remembers:
            parts.gateway.left_out += failed
            known |= {state.name for state in failed}
        parts.gateway.failed_before = {state.name: state.error for state in failed}
        parts.servers.use([spec for spec in specs if spec.name not in known])
        parts.indexing.use(config.servers, remembered.offers)
        await parts.settled(PATIENCE_SECONDS, not_for=remembered.failed)
        yield parts.gateway


def _recall(settings: GatewaySettings, config: Config, need: Need) -> Remembered:
    """What need not be asked again. Who asks for fresh tools, or for one server, waits for what there is."""
    if need.refresh or need.only_server or settings.search_no_cache:
        return Remembered()
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
class Parts:
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
async def open_parts(
    settings: GatewaySettings, on_progress: OnProgress, *, model: bool = True
) -> AsyncIterator[Parts]:
    """A gateway at work, with no servers yet."""
    if model:
        require_model(settings)
    from toolscript.adapters.mcp_servers import McpServers

    recipe = Recipe(meaning=settings.search_alpha)
    search = LocalSearch(_capabilities(settings), recipe, SearchType(settings.search_type))
    servers = McpServers()
    indexing = make_indexing(settings, servers, search, on_progress, model=model)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(servers.close)
        working = asyncio.create_task(indexing.run())
        stack.push_async_callback(_end, working)
        gateway = LocalGateway(servers, search, indexing, settings.search_model, patience=FIRST_ANSWER_SECONDS)
        yield Parts(servers, indexing, gateway, working)


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
    from toolscript.adapters.embedding_cache import CachedEmbedder
    from toolscript.adapters.local_model.embedder import LocalEmbedder
    from toolscript.adapters.local_model.engine import Device

    model = LocalEmbedder(
        settings.search_model,
        device=Device(settings.search_device),
        downloads=downloads,
        on_progress=on_progress,
    )
    return CachedEmbedder(model, size=1024)


def require_model(settings: GatewaySettings) -> None:
    """What was asked for by name and does not exist is not replaced by words alone, as a model out of reach is."""
    if model_folder(settings.search_model) is None and settings.search_model not in USUAL_MODELS:
        from toolscript.adapters.local_model.named import known_name

        known_name(settings.search_model)
    if settings.search_device == "gpu":
        from toolscript.adapters.local_model.engine import Device, providers_for

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
