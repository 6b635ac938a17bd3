"""Keeps the catalog equal to what MCP servers offer, for as long as somebody likes."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from toolscript.errors import Unavailable
from toolscript.model.servers import Offer, ServerState, ServerStatus
from toolscript.sync.server_items import ServerReport, ServerSync

AGAIN_SECONDS = 5.0

logger = logging.getLogger(__name__)


class FollowingServers:
    """Told of every change of a server, it takes what is new; `on_report` hears of what came of it."""

    def __init__(
        self,
        sync: ServerSync,
        on_report: Callable[[ServerReport], None],
        *,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        self._sync = sync
        self._on_report = on_report
        self._again_seconds = again_seconds
        self._taken: dict[str, Offer | None] = {}
        self._failed: dict[str, str] = {}

    async def run(self) -> None:
        revision, all_taken = -1, True
        while True:
            # What could not be stored is tried again although nothing changes.
            with suppress(TimeoutError):
                async with asyncio.timeout(None if all_taken else self._again_seconds):
                    revision = await self._sync.servers.changed(revision)
            all_taken = await self._take_what_is_new()

    async def _take_what_is_new(self) -> bool:
        try:
            for state in self._sync.servers.states():
                if state.status is ServerStatus.READY:
                    await self._take(state)
                elif state.status is ServerStatus.FAILED:
                    self._tell_failed(state)
        except Unavailable as error:
            logger.warning("waiting for the catalog", extra={"reason": error.message})
            return False
        return True

    async def _take(self, state: ServerState) -> None:
        offer, was_down = self._sync.offer_of(state.name), state.name in self._failed
        is_first = state.name not in self._taken
        if not is_first and not was_down and offer == self._taken[state.name]:
            return
        report = await self._sync.take(state)
        self._failed.pop(state.name, None)
        self._taken[state.name] = offer
        if is_first or was_down or report.says_news:
            self._on_report(report)

    def _tell_failed(self, state: ServerState) -> None:
        if self._failed.get(state.name) != state.error:
            self._failed[state.name] = state.error
            self._on_report(ServerReport(state.name, failed=state.error))
