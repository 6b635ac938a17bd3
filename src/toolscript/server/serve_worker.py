"""The worker inside `serve`: it builds the index of tools where there is none, and follows the catalog."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.model import IndexCard, Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.server.indexing import propose_every, worker_of
from toolscript.server.observability import Observability
from toolscript.server.skills import open_classifier
from toolscript.server.stores import AbsentModel, Stores
from toolscript.tools.indexing.versions import open_for_writing
from toolscript.tools.indexing.wakeup import Wakeup, WakingCatalog, WakingContents
from toolscript.tools.indexing.worker import Worker
from toolscript.tools.ports import Classifier

# Small, so that searches do not wait behind a batch, and a new item not behind a long one.
BATCH = 16
# Texts that take a thread of the model at a time.
TEXTS = 8
# Between two looks for changes by other processes; those of this process wake the worker.
POLL_SECONDS = 0.5
# So long such a few wait for searches that run, at most.
YIELD_SECONDS, LOOK_SECONDS = 0.05, 0.005
# Between two attempts to open the index.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 5.0
# The start of the service waits so long for the worker to catch up: then a small catalog is found at once.
START_SECONDS = 5.0
# For the batch in progress at the end, and again for its release.
END_SECONDS = 2.0

logger = logging.getLogger(__name__)


class YieldingEmbedder:
    """Embeds texts a few at a time, and lets searches go first."""

    def __init__(self, embedder: Embedder, is_busy: Callable[[], bool]) -> None:
        self._embedder = embedder
        self._is_busy = is_busy

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        parts = list[Matrix]()
        for first in range(0, len(texts), TEXTS):
            await self._give_way()
            parts.append(await self._embedder.embed_texts(texts[first : first + TEXTS]))
        return np.concatenate(parts) if parts else await self._embedder.embed_texts(texts)

    async def _give_way(self) -> None:
        """Wait while searches run, but not for ever: under constant load the index must follow, too."""
        for _ in range(int(YIELD_SECONDS / LOOK_SECONDS)):
            if not self._is_busy():
                return
            await asyncio.sleep(LOOK_SECONDS)


@dataclass
class ServeWorker:
    """Follows the catalog beside searches. Several processes share the work, as workers apart do."""

    settings: Settings
    stores: Stores
    embedder: Embedder
    wakeup: Wakeup = field(default_factory=Wakeup)
    _worker: Worker | None = None
    _is_ending: bool = False
    _reason: str = ""

    async def follow(self) -> None:
        """Work until `end`. After a failure open the index again: it may be lost, or cannot be made yet."""
        pause = FIRST_PAUSE_SECONDS
        while not self._is_ending:
            try:
                async with open_classifier(self.settings, self.embedder) as classifying:
                    self._worker = await self._open(classifying.classifier)
                    pause, self._reason = FIRST_PAUSE_SECONDS, ""
                    if not self._is_ending:
                        await self._worker.run_forever(POLL_SECONDS)
            except ToolscriptError as error:
                self._say(f"{error.message}; {error.hint}" if error.hint else error.message)
            except Exception:
                logger.exception("the worker failed", extra={"part": "worker"})
            finally:
                self._worker = None
            if not self._is_ending:
                await self.wakeup.wait(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def end(self) -> None:
        self._is_ending = True
        self.wakeup.call()
        if self._worker is not None:
            self._worker.end()

    async def _open(self, classifier: Classifier) -> Worker:
        card = IndexCard(self.embedder.model)
        opened = await open_for_writing(self.stores.indexes, self.stores.dirty, card)
        return worker_of(self.stores, self.embedder, classifier, opened, batch=BATCH, wakeup=self.wakeup)

    def _say(self, reason: str) -> None:
        """Log a reason once, however often it is met in a row."""
        if reason != self._reason:
            logger.warning("the index of tools is not followed", extra={"part": "worker", "reason": reason})
        self._reason = reason


@asynccontextmanager
async def following_catalog(
    settings: Settings,
    stores: Stores,
    embedder: Embedder,
    observability: Observability,
    is_busy: Callable[[], bool],
) -> AsyncIterator[Stores]:
    """Yield the stores whose writes wake the worker; without a worker, those that were given."""
    if not settings.serve_worker or isinstance(embedder, AbsentModel):
        # Without the model of the index nothing can be embedded; the start has logged that.
        yield stores
        return
    yielding = YieldingEmbedder(observability.embedder(embedder), is_busy)
    worker = ServeWorker(settings, observability.worked_on(stores), yielding)
    following = asyncio.create_task(worker.follow())
    proposing = asyncio.create_task(propose_every(settings.propose_hours * 3_600))
    try:
        await _at_most(START_SECONDS, asyncio.ensure_future(worker.wakeup.waited.wait()))
        yield replace(
            stores,
            catalog=WakingCatalog(stores.catalog, worker.wakeup.call),
            contents=WakingContents(stores.contents, worker.wakeup.call),
        )
    finally:
        proposing.cancel()
        worker.end()
        await asyncio.wait({following}, timeout=END_SECONDS)
        following.cancel()
        await asyncio.wait({following, proposing}, timeout=END_SECONDS)


async def _at_most(seconds: float, work: "asyncio.Future[object]") -> None:
    await asyncio.wait({work}, timeout=seconds)
    work.cancel()
