"""The live version of the documents' index, with its model; another one that becomes live is followed.

A request is answered by one version from its first step to its last: vectors of two models never meet.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from toolscript.errors import IndexReplaced, ToolscriptError, Unavailable
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.document_results import DocumentAnswer
from toolscript.model.documents import Document, PutResult, StoredDocument
from toolscript.model.tenancy import Caller
from toolscript.surfaces.http.document_parts import KeepsDocuments, SearchesDocuments
from toolscript.surfaces.http.health import CheckHealth, Health, PartHealth

LOOK_EVERY_SECONDS = 1.0
# Requests that began with the version before are answered by it.
CLOSE_AFTER_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedVersion:
    name: str
    search: SearchesDocuments
    desk: KeepsDocuments
    check_health: CheckHealth


T = TypeVar("T")
OpenVersion = Callable[[], AbstractAsyncContextManager[ServedVersion]]


class LiveDocuments:
    def __init__(self, open_version: OpenVersion, live_name: Callable[[], Awaitable[str | None]]) -> None:
        self._open_version = open_version
        self._live_name = live_name
        self._served: ServedVersion | None = None
        self._resources = AsyncExitStack()
        self._problem: ToolscriptError = Unavailable("documents are not open yet", hint="try again in a moment")
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def search(self, caller: Caller, query: DocumentQuery) -> DocumentAnswer:
        return await self._version().search.search(caller, query)

    async def put(self, caller: Caller, documents: Sequence[Document]) -> Sequence[PutResult]:
        return await self._written(lambda desk: desk.put(caller, documents))

    async def remove(self, caller: Caller, ids: Sequence[str]) -> Sequence[str]:
        return await self._written(lambda desk: desk.remove(caller, ids))

    async def _written(self, write: Callable[[KeepsDocuments], Awaitable[T]]) -> T:
        """A version that was replaced lets nobody write: the next one is opened at once, and written to."""
        version = self._version()
        try:
            return await write(version.desk)
        except IndexReplaced:
            async with self._opening:
                if self._served is version:
                    await self._open()
        return await write(self._version().desk)

    async def document(self, caller: Caller, document_id: str) -> StoredDocument:
        return await self._version().desk.document(caller, document_id)

    async def check_health(self) -> Health:
        if self._served is None:
            return Health({"index": PartHealth(ok=False, needed=True, note="see the log")})
        return await self._served.check_health()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Opened, and from then on followed. What cannot be opened stops neither the rest nor the next try."""
        await self._follow_once()
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            for closing in self._closing:
                closing.cancel()
            await self._resources.aclose()

    def _version(self) -> ServedVersion:
        if self._served is None:
            raise self._problem
        return self._served

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            await self._follow_once()

    async def _follow_once(self) -> None:
        try:
            async with self._opening:
                if self._served is None or await self._live_name() not in (None, self._served.name):
                    await self._open()
        except ToolscriptError as error:
            self._warn(error)

    async def _open(self) -> None:
        async with AsyncExitStack() as opening:
            served = await opening.enter_async_context(self._open_version())
            before, self._resources = self._resources, opening.pop_all()
        if self._served is not None:
            logger.info("documents are served by another version of their index", extra={"index": served.name})
            self._close_later(before)
        self._served = served

    def _close_later(self, resources: AsyncExitStack) -> None:
        async def close() -> None:
            try:
                await asyncio.sleep(CLOSE_AFTER_SECONDS)
            finally:
                await resources.aclose()

        task = asyncio.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _warn(self, error: ToolscriptError) -> None:
        """Once for each problem: this is tried again every second."""
        if str(error) != str(self._problem):
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            logger.warning("documents cannot be opened", extra={"part": "documents", "reason": reason})
        self._problem = error
