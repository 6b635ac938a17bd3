"""migrate, worker, reindex, doctor and the list of indexes."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolscript.core.errors import SetupError
from toolscript.core.qdrant.collections import FoundCollection, found_collections
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import IndexStatus, OnProgress, Progress, SchemaStatus, silent
from toolscript.core.web.logs import configure_logs
from toolscript.documents.model.points import DocumentVersion, VersionState
from toolscript.documents.postgres import PostgresDocumentVersions
from toolscript.server.settings import load_settings
from toolscript.server.skills import Classifying, load_default_skills, open_classifier
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import CatalogStores, Stores, embedder_of, open_embedder, open_stores
from toolscript.server.worker_metrics import measured, metrics_served, worker_metrics
from toolscript.tools.indexing import versions
from toolscript.tools.indexing.doctor import Doctor, DoctorReport
from toolscript.tools.indexing.indexer import Indexer, ItemSkills, OnStep, unobserved
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.indexing.versions import Opened
from toolscript.tools.indexing.worker import Worker, WorkReport
from toolscript.tools.model.catalog import Generation
from toolscript.tools.ports import Classifier
from toolscript.tools.skills.importing import LoadedSkills

if TYPE_CHECKING:
    from toolscript.server.metrics import WorkerMetrics


logger = logging.getLogger(__name__)


def migrate(*, down_to: str | None, skills: bool) -> tuple[SchemaStatus, LoadedSkills | None]:
    from toolscript.core.postgres.migrate import downgrade, upgrade

    settings = load_settings()
    url = settings.postgres_url.get_secret_value()
    if down_to is not None:
        return downgrade(url, down_to), None
    status = upgrade(url)
    return status, load_default_skills(settings) if skills else None


def schema_status(*, down_to: str | None = None) -> SchemaStatus:
    """With `down_to`, a revision that cannot be gone back to is refused."""
    from toolscript.core.postgres import migrate as schema

    status = schema.schema_status(load_settings().postgres_url.get_secret_value())
    if down_to is not None:
        schema.require_way_down(status, down_to)
    return status


def drain(on_progress: OnProgress) -> WorkReport:
    async def run() -> WorkReport:
        async with open_index_writer(load_settings()) as writer:
            report = await writer.worker(on_progress).drain()
            return replace(report, language_model=writer.classifying.spent())

    return asyncio.run(run())


def work() -> None:
    settings = load_settings()
    configure_logs(settings.log_level, settings.log_format)

    def log(at: Progress) -> None:
        logger.info("progress", extra={"task": at.task, "done": at.done, "total": at.total})

    async def run() -> None:
        metrics = worker_metrics(settings)
        async with (
            open_index_writer(settings, metrics) as writer,
            metrics_served(settings, metrics, writer.watch(metrics)),
        ):
            working = asyncio.ensure_future(writer.worker(log).run_forever())
            for sign in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(sign, working.cancel)
            logger.info("worker started")
            with suppress(asyncio.CancelledError):
                await working
            logger.info("worker stopped")

    asyncio.run(run())


def reindex(*, drop_previous: bool, on_progress: OnProgress) -> dict[str, object]:
    async def drop() -> dict[str, object]:
        async with open_stores(load_settings()) as stores:
            return {"dropped": await versions.drop_previous(stores.indexes, stores.dirty)}

    async def build() -> dict[str, object]:
        settings = load_settings()
        async with (
            open_stores(settings) as stores,
            open_embedder(settings) as embedder,
            AsyncExitStack() as stack,
        ):
            card = IndexCard(embedder.model)
            opened = await versions.begin_reindex(stores.indexes, stores.dirty, card, on_progress)
            writer = await stack.enter_async_context(_writer(settings, stores, embedder, opened))
            worker = writer.worker(on_progress)
            async with stores.indexes.items.loading(card):
                await worker.drain()
            # What changed while the engine was building its graph.
            report = await worker.drain()
            if report.left:
                raise await _not_all_indexed(stores, opened.generation, report)
            await versions.switch_to(stores.indexes, stores.dirty, opened.generation)
            # A skill that was changed just before the switch has been written to the index before only.
            await worker.drain()
            return {"live": card.fingerprint, "model": card.model.name, "indexed": report.followed}

    return asyncio.run(drop() if drop_previous else build())


def doctor(*, repair: bool, on_progress: OnProgress) -> DoctorReport:
    async def run() -> DoctorReport:
        settings = load_settings()
        async with open_stores(settings) as stores:
            card = await _live_card(settings, stores)
            opened = await versions.open_for_doctor(stores.indexes, stores.dirty, card)
            doctor = Doctor(stores.catalog, stores.dirty, stores.skill_vectors, opened)
            return await doctor.examine(repair=repair, on_progress=on_progress)

    return asyncio.run(run())


@dataclass(frozen=True)
class IndexWriter:
    """A model and the generation it writes."""

    stores: Stores
    embedder: Embedder
    classifying: Classifying
    opened: Opened

    def watch(self, metrics: "WorkerMetrics | None") -> StoreWatch | None:
        return None if metrics is None else StoreWatch(self.stores, self.opened.index, metrics.stores)

    def worker(self, on_progress: OnProgress, at_step: OnStep = unobserved) -> Worker:
        classifier = self.classifying.classifier
        return worker_of(self.stores, self.embedder, classifier, self.opened, on_progress, at_step)


# So many items are embedded and written in one call; a batch that fails is done again as a whole.
BATCH = 64
# A killed worker's batch is taken over after this; a worker that lives renews it from a thread of its own.
LEASE_SECONDS = 2.5


def worker_of(
    stores: CatalogStores,
    embedder: Embedder,
    classifier: Classifier,
    opened: Opened,
    on_progress: OnProgress = silent,
    at_step: OnStep = unobserved,
) -> Worker:
    generation = opened.generation.id
    indexer = Indexer(
        stores.catalog,
        stores.dirty,
        stores.skill_vectors,
        ItemSkills(stores.taxonomy, stores.assignments, classifier),
        embedder,
        opened.index,
        generation,
        batch=BATCH,
        lease_seconds=LEASE_SECONDS,
        at_step=at_step,
    )
    skill_points = SkillPoints(stores.skill_vectors, embedder, opened.skills, generation)
    return Worker(indexer, skill_points, stores.suggestions, stores.dirty, generation, on_progress=on_progress)


@asynccontextmanager
async def open_index_writer(
    settings: Settings, metrics: "WorkerMetrics | None" = None
) -> AsyncIterator[IndexWriter]:
    async with open_stores(settings) as plain, _model_to_follow(settings, plain) as plain_embedder:
        stores, embedder = measured(plain, plain_embedder, metrics)
        card = IndexCard(embedder.model)
        opened = await versions.open_for_writing(stores.indexes, stores.dirty, card)
        async with _writer(settings, stores, embedder, opened) as writer:
            yield writer


@asynccontextmanager
async def _model_to_follow(settings: Settings, stores: Stores) -> AsyncIterator[Embedder]:
    """The configured one, once there is an index of it; until then the one of the live index."""
    async with open_embedder(settings) as configured:
        origin = await stores.indexes.items.origin()
        wanted = IndexCard(configured.model).fingerprint
        if origin is None or any(
            generation.fingerprint == wanted for generation in await stores.dirty.generations()
        ):
            yield configured
            return
        async with embedder_of(origin, settings, configured, "tools") as own:
            yield own


async def _live_card(settings: Settings, stores: Stores) -> IndexCard:
    origin = await stores.indexes.items.origin()
    if origin is not None:
        return IndexCard(origin.model)
    async with open_embedder(settings) as embedder:
        return IndexCard(embedder.model)


@asynccontextmanager
async def _writer(
    settings: Settings, stores: Stores, embedder: Embedder, opened: Opened
) -> AsyncIterator[IndexWriter]:
    async with open_classifier(settings, embedder) as classifying:
        yield IndexWriter(stores, embedder, classifying, opened)


async def _not_all_indexed(stores: Stores, generation: Generation, report: WorkReport) -> SetupError:
    failing = await stores.dirty.failing(generation.id, 5)
    return SetupError(
        f"{report.left} items could not be indexed, so the live index was left as it is",
        hint="run `toolscript reindex` again once the reasons are mended",
        details={"failing": {str(item): reason for item, reason in failing}},
    )


def list_indexes() -> Sequence[IndexStatus]:
    async def look() -> Sequence[IndexStatus]:
        settings = load_settings()
        async with open_stores(settings) as stores:
            return await overview(settings, stores)

    return asyncio.run(look())


async def overview(settings: Settings, stores: Stores) -> Sequence[IndexStatus]:
    library = (settings.qdrant_chunks_alias, settings.qdrant_extractions_alias)
    return [
        *await _of_tools(settings.qdrant_alias, stores),
        *await _of_documents(settings.qdrant_documents_alias, stores),
        *[_shown("knowledge", collection) for alias in library for collection in await _found(stores, alias)],
    ]


async def _of_tools(alias: str, stores: Stores) -> list[IndexStatus]:
    statuses = list[IndexStatus]()
    generations = {f"{alias}__{one.fingerprint}": one for one in await stores.dirty.generations()}
    for one in await _found(stores, alias):
        generation = generations.get(one.origin.collection)
        waiting = (await stores.dirty.pending(generation.id)).total if generation else 0
        under_way = f"{waiting:,} items wait for a worker" if waiting else ""
        statuses.append(_shown("tools", one, generation.state.value if generation else "", under_way))
    return statuses


async def _of_documents(alias: str, stores: Stores) -> list[IndexStatus]:
    record = PostgresDocumentVersions(stores.pool)
    known: Mapping[str, DocumentVersion] = {one.name: one for one in await record.all()}
    statuses = list[IndexStatus]()
    for one in await _found(stores, alias):
        version = known.get(one.origin.collection)
        under_way = "" if version is None else _under_way(version, await record.pending(version.name))
        statuses.append(_shown("documents", one, version.state.value if version else "", under_way))
    return statuses


def _under_way(version: DocumentVersion, changes: int) -> str:
    said = [f"{changes:,} changes to bring over"] if changes else []
    if version.state is VersionState.BUILDING:
        position = version.position
        said.insert(
            0,
            "filled"
            if position.done
            else f"filled up to tenant {position.tenant}"
            if position.tenant
            else "being filled",
        )
    return ", ".join(said)


async def _found(stores: Stores, alias: str) -> Sequence[FoundCollection]:
    return await found_collections(stores.qdrant, alias)


def _shown(product: str, collection: FoundCollection, state: str = "", under_way: str = "") -> IndexStatus:
    """What nobody recorded is what the alias says it is."""
    state = state or ("live" if collection.is_live else "previous")
    name, model = collection.origin.collection, collection.origin.model.name
    return IndexStatus(product, name, state, model, collection.points, collection.shards, under_way)
