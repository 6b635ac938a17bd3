"""A worker process that reports its claims, and dies or stalls on demand."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import IndexWriter
from toolscript.server.skills import open_classifier
from toolscript.server.stores import open_embedder, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.indexer import Step
from toolscript.tools.indexing.versions import open_for_writing
from toolscript.tools.model.catalog import Claim
from toolscript.tools.postgres.dirty_set import PostgresDirtySet

HASH = "hash"


@dataclass(frozen=True)
class Doom:
    """Action when the step is reached for the n-th time. Without a step, the worker runs normally."""

    step: Step | None = None
    times: int = 1
    signal: int = signal.SIGKILL


class ToldDirtySet(PostgresDirtySet):
    """Reports claims with their owner, so that a takeover can be detected."""

    def __init__(self, pool: Pool, tell: Connection) -> None:
        super().__init__(pool)
        self._tell = tell

    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        claim = await super().claim(index_version, limit, lease_seconds, abandoned_first=abandoned_first)
        if claim.versions:
            self._tell.send(("claimed", claim.token))
        return claim


def run(settings: Settings, tell: Connection, doom: Doom) -> None:
    asyncio.run(_work(settings, tell, doom))


async def _work(settings: Settings, tell: Connection, doom: Doom) -> None:
    seen = 0

    def at_step(reached: Step) -> None:
        nonlocal seen
        seen += reached is doom.step
        if doom.step is not None and seen == doom.times:
            seen += 1
            tell.send(("doomed", reached.value))
            os.kill(os.getpid(), doom.signal)
        if reached is Step.CLEARED:
            tell.send(("cleared", ""))

    async with embedder_of(settings) as embedder, open_stores(settings) as stores:
        opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(embedder.model))
        told = replace(stores, dirty=ToldDirtySet(stores.pool, tell))
        async with open_classifier(settings, embedder) as classifying:
            tell.send(("started", ""))
            await IndexWriter(told, embedder, classifying, opened).worker(silent, at_step).run_forever()


@asynccontextmanager
async def embedder_of(settings: Settings) -> AsyncIterator[Embedder]:
    """Return the embedder: `hash` for vectors without a model, or the name of a model."""
    if settings.embedding_model == HASH:
        yield HashEmbedder()
        return
    async with open_embedder(settings) as embedder:
        yield embedder
