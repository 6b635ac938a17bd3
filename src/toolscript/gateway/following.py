"""A gateway that follows its config files: it uses them as they are, whenever they change."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from toolscript.core.errors import ConfigInvalid
from toolscript.core.mcp_client.model import Offer
from toolscript.core.values import silent
from toolscript.gateway.config.read import Config, ConfigPlace, left_out
from toolscript.gateway.config.watch import config_changes
from toolscript.gateway.discovery import place_of, with_secrets
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.runtime import (
    FAILED_SECONDS,
    REMEMBERED_SECONDS,
    Resources,
    Shared,
    cache_folder,
    failed_before,
    open_resources,
    read_call_rules,
    read_curation,
)
from toolscript.gateway.secret_store import NO_KEYRING, names_file
from toolscript.gateway.settings import GatewaySettings, environment
from toolscript.gateway.store.offers import OfferFile

MODEL_FIRST_SECONDS = 2.0
# Searched until its servers have been listed again.
SEARCHED_SECONDS = 30 * 24 * 3600.0
# A gateway that starts with the session may be there before its user unlocks the keyring.
KEYRING_RETRY_SECONDS = 30.0
# A config, and the cached offers of its servers that need not be listed again.
_Used = tuple[Config, Sequence[Offer]]

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_following(
    settings: GatewaySettings, place: ConfigPlace | None = None, shared: Shared | None = None
) -> AsyncIterator[Resources]:
    """Open a gateway that answers from the cache until its servers have started.

    It follows the files of `place`, else those of this folder. What is `shared` stays open after it.
    """
    place = with_secrets(place or place_of(settings), settings.data_folder)
    async with AsyncExitStack() as stack:
        resources = await stack.enter_async_context(open_resources(settings, silent, at_once=True, shared=shared))
        stop_watching = asyncio.Event()
        stack.callback(stop_watching.set)
        named: list[Path] = []
        # Watching starts before reading, so that no change is missed.
        watched = _watched(settings, place, resources)
        changes = config_changes(watched, stop_watching, named=lambda: [*named])
        config, offers = await _use_config(settings, place, resources, named)
        if not resources.indexing.uses_cache or len(offers) == len(config.servers):
            # Mark the servers as starting, so that a search waits instead of using an empty index; or as asleep.
            resources.servers.use(config.servers, offers)
        await resources.indexing.has_begun()
        following = asyncio.create_task(_follow(settings, place, resources, (config, offers), changes, named))
        stack.callback(following.cancel)
        yield resources


def _watched(settings: GatewaySettings, place: ConfigPlace, resources: Resources) -> list[Path]:
    """Return the config files with their trust records, and what changes with an approval or a secret."""
    approvals = resources.indexing.approvals
    decided = [approvals.decided_file] if approvals else []
    return [*place.watched(), *decided, names_file(settings.data_folder)]


async def _use_config(
    settings: GatewaySettings, place: ConfigPlace, resources: Resources, named: list[Path]
) -> _Used:
    """Use the config of now. `named` gets the files that it names, to be watched, too."""
    # On a thread: a keyring may take seconds.
    config = await asyncio.to_thread(place.read_and_warn, environment())
    named[:] = config.named
    resources.gateway.curate(read_curation(config))
    resources.gateway.rules = read_call_rules(config, resources.gateway.is_approved)
    max_seconds = 0.0 if settings.search_no_cache else SEARCHED_SECONDS
    cached = OfferFile(cache_folder(settings) / "tools", config.servers).recall(max_seconds, FAILED_SECONDS)
    resources.gateway.left_out = left_out(config)
    for state in resources.gateway.left_out:
        logger.error("a server cannot be started", extra={"server": state.name, "reason": state.error})
    resources.gateway.failed_before = {
        state.name: state.error for state in failed_before(config.servers, cached.failed)
    }
    resources.indexing.use(config.servers, cached.offers)
    return config, [offer for offer in cached.offers if cached.ages[offer.server] < REMEMBERED_SECONDS]


async def _follow(
    settings: GatewaySettings,
    place: ConfigPlace,
    resources: Resources,
    used: _Used,
    changes: AsyncIterator[None],
    named: list[Path],
) -> None:
    """With cached tools, load the model before the servers: it improves answers and loads faster."""
    if resources.indexing.ready:
        with suppress(TimeoutError):
            await asyncio.wait_for(resources.indexing.wait_for_model(), MODEL_FIRST_SECONDS)
    config, offers = used
    resources.servers.use(config.servers, offers)
    async for _ in _with_retries(changes, place, resources.gateway):
        try:
            config, offers = await _use_config(settings, place, resources, named)
            resources.servers.use(config.servers, offers)
        except (ConfigInvalid, OSError) as error:
            # OSError: the gateway's working folder was removed.
            logger.error("the config file cannot be used; the servers stay as they were: %s", error)
        else:
            logger.warning("the config file, trust, approvals or secrets changed and were read again")


async def _with_retries(
    changes: AsyncIterator[None], place: ConfigPlace, gateway: LocalGateway
) -> AsyncIterator[None]:
    """Yield for each change, and when a keyring was unlocked that a server waits for."""
    change = asyncio.ensure_future(anext(changes))
    try:
        while True:
            waits = any(NO_KEYRING in state.error for state in gateway.left_out)
            await asyncio.wait({change}, timeout=KEYRING_RETRY_SECONDS if waits else None)
            if change.done():
                try:
                    change.result()
                except StopAsyncIteration:
                    return
                change = asyncio.ensure_future(anext(changes))
            elif await asyncio.to_thread(_is_locked, place):
                continue
            yield
    finally:
        change.cancel()


def _is_locked(place: ConfigPlace) -> bool:
    """Return whether the config still needs a secret of a keyring that cannot be used."""
    with suppress(ConfigInvalid, OSError):
        return any(NO_KEYRING in problem.message for problem in place.read(environment()).problems)
    return True
