"""Commands on the catalog's indexes: migrate, worker, reindex, doctor and the list of indexes."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolscript.core.errors import IndexLost, SetupError
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.qdrant.collections import CollectionInfo, list_collections
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import IndexStatus, OnProgress, Progress, SchemaStatus, silent
from toolscript.core.web.logs import configure_logs
from toolscript.documents.model.points import DocumentVersion, VersionState
from toolscript.server.audit import recorded
from toolscript.server.document_index import LiveIndex
from toolscript.server.settings import load_settings
from toolscript.server.skills import Classifying, load_default_skills, open_classifier
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import CatalogStores, Stores, embedder_of, open_embedder, open_stores
from toolscript.server.worker_metrics import measured, serve_worker_metrics, worker_metrics
from toolscript.tools.indexing import versions
from toolscript.tools.indexing.doctor import Doctor, DoctorReport
from toolscript.tools.indexing.indexer import Indexer, ItemSkills, OnStep, unobserved
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.indexing.versions import Opened
from toolscript.tools.indexing.wakeup import Wakeup
from toolscript.tools.indexing.worker import Worker, WorkReport
from toolscript.tools.model.catalog import IndexVersion
from toolscript.tools.ports import Classifier
from toolscript.tools.skills.importing import LoadedSkills

if TYPE_CHECKING:
    from toolscript.server.metrics import WorkerMetrics


logger = logging.getLogger(__name__)


def migrate(*, down_to: str | None, skills: bool) -> tuple[SchemaStatus, LoadedSkills | None]:
    from toolscript.core.postgres import migrate as schema
    from toolscript.core.postgres.migrate import downgrade, upgrade
    from toolscript.core.postgres.schema import REVISION

    settings = load_settings()
    url = settings.postgres_url.get_secret_value()
    if down_to is not None:
        return downgrade(url, down_to), None
    before = schema.schema_status(url).current
    with recorded("schema.migrate", REVISION) as change:
        status = upgrade(url)
        change.count = int(status.current != before)
    return status, load_default_skills(settings) if skills else None


def schema_status(*, down_to: str | None = None) -> SchemaStatus:
    """Return the status of the schema. Raise if `down_to` is a revision that it cannot be downgraded to."""
    from toolscript.core.postgres import migrate as schema

    status = schema.schema_status(load_settings().postgres_url.get_secret_value())
    if down_to is not None:
        schema.require_downgradable(status, down_to)
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

    def log(progress: Progress) -> None:
        logger.info("progress", extra={"task": progress.task, "done": progress.done, "total": progress.total})

    async def run() -> None:
        metrics = worker_metrics(settings)
        async with (
            open_index_writer(settings, metrics) as writer,
            serve_worker_metrics(settings, metrics, writer.watch(settings, metrics)),
        ):
            working = asyncio.ensure_future(writer.worker(log).run_forever())
            proposing = asyncio.ensure_future(propose_every(settings.propose_hours * 3_600))
            working.add_done_callback(lambda _: proposing.cancel())
            for sign in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(sign, working.cancel)
            logger.info("worker started")
            with suppress(asyncio.CancelledError):
                await working
            logger.info("worker stopped")

    asyncio.run(run())


async def propose_every(seconds: float) -> None:
    """Run `skills propose` and `skills describe` again and again; never if `seconds` is 0."""
    while seconds:
        await asyncio.sleep(seconds)
        for command in ("propose", "describe"):
            try:
                code = await run_skills_command(command)
                reason = f"exit code {code}" if code else ""
            except OSError as error:
                reason = str(error)
            if reason:
                logger.warning(f"skills {command} failed", extra={"part": "worker", "reason": reason})


async def run_skills_command(name: str) -> int:
    """Run a command in a process of its own: clustering would hold up the worker. Return its exit code."""
    arguments = ("-m", "toolscript", "skills", name, "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        raise


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
            # Items that changed while the engine was building its graph.
            report = await worker.drain()
            if report.left:
                raise await _not_all_indexed(stores, opened.index_version, report)
            await versions.switch_to(stores.indexes, stores.dirty, opened.index_version)
            # A skill changed just before the switch was written to the previous index only.
            await worker.drain()
            return {"live": card.fingerprint, "model": card.model.name, "indexed": report.indexed}

    with recorded("index.drop" if drop_previous else "index.switch", "tools") as change:
        done = asyncio.run(drop() if drop_previous else build())
        change.count = 1
        change.details |= done
    return done


def doctor(*, repair: bool, on_progress: OnProgress) -> DoctorReport:
    async def run() -> DoctorReport:
        settings = load_settings()
        async with open_stores(settings) as stores:
            card = await _live_card(settings, stores)
            opened = await versions.open_for_doctor(stores.indexes, stores.dirty, card)
            doctor = Doctor(stores.catalog, stores.dirty, stores.skill_vectors, opened)
            return await doctor.examine(repair=repair, on_progress=on_progress)

    with recorded("index.repair", "tools") as change:
        report = asyncio.run(run())
        wrong = report.missing + report.stale + report.extra + report.wrong_skills
        change.count = wrong if report.repaired else 0
    return report


@dataclass(frozen=True)
class IndexWriter:
    """A model and the index version it writes."""

    stores: Stores
    embedder: Embedder
    classifying: Classifying
    opened: Opened

    def watch(self, settings: Settings, metrics: "WorkerMetrics | None") -> StoreWatch | None:
        if metrics is None:
            return None
        counts = LiveIndex.of(settings, self.stores).counts
        return StoreWatch(self.stores, self.opened.index, metrics.stores, counts)

    def worker(self, on_progress: OnProgress, at_step: OnStep = unobserved) -> Worker:
        classifier = self.classifying.classifier
        return worker_of(self.stores, self.embedder, classifier, self.opened, on_progress, at_step)


# Items embedded and written in one call; a batch that fails is retried as a whole.
BATCH = 64
# Another worker takes over the batch of a killed one after this; a live worker renews it from its own thread.
LEASE_SECONDS = 2.5


def worker_of(
    stores: CatalogStores,
    embedder: Embedder,
    classifier: Classifier,
    opened: Opened,
    on_progress: OnProgress = silent,
    at_step: OnStep = unobserved,
    *,
    batch: int = BATCH,
    wakeup: Wakeup | None = None,
) -> Worker:
    index_version = opened.index_version.id
    indexer = Indexer(
        stores.catalog,
        stores.dirty,
        stores.skill_vectors,
        ItemSkills(stores.taxonomy, stores.assignments, classifier),
        embedder,
        opened.index,
        index_version,
        batch=batch,
        lease_seconds=LEASE_SECONDS,
        at_step=at_step,
    )
    skill_points = SkillPoints(stores.skill_vectors, embedder, opened.skills, index_version)
    return Worker(
        indexer,
        skill_points,
        stores.suggestions,
        stores.dirty,
        index_version,
        on_progress=on_progress,
        wakeup=wakeup,
    )


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
    """Open the configured model if an index version uses it, otherwise the model of the live index."""
    async with open_embedder(settings) as configured:
        origin = await stores.indexes.items.origin()
        fingerprint = IndexCard(configured.model).fingerprint
        if origin is None or any(
            index_version.fingerprint == fingerprint for index_version in await stores.dirty.index_versions()
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


async def _not_all_indexed(stores: Stores, index_version: IndexVersion, report: WorkReport) -> SetupError:
    failing = await stores.dirty.failing(index_version.id, 5)
    return SetupError(
        f"{report.left} items could not be indexed, so the live index was left as it is",
        hint="fix the causes and run `toolscript reindex` again",
        details={"failing": {str(item): reason for item, reason in failing}},
    )


def list_indexes() -> Sequence[IndexStatus]:
    async def run() -> Sequence[IndexStatus]:
        settings = load_settings()
        async with open_stores(settings) as stores:
            return await overview(settings, stores)

    return asyncio.run(run())


async def overview(settings: Settings, stores: Stores) -> Sequence[IndexStatus]:
    library = (settings.qdrant_chunks_alias, settings.qdrant_extractions_alias)
    return [
        *await _tool_indexes(settings.qdrant_alias, stores),
        *await _document_indexes(LiveIndex.of(settings, stores), stores),
        *[
            _status_of("knowledge", collection)
            for alias in library
            for collection in await _find_collections(stores, alias)
        ],
    ]


async def _tool_indexes(alias: str, stores: Stores) -> list[IndexStatus]:
    statuses = list[IndexStatus]()
    index_versions = {f"{alias}__{each.fingerprint}": each for each in await stores.dirty.index_versions()}
    for collection in await _find_collections(stores, alias):
        index_version = index_versions.get(collection.index_version)
        is_whole = collection.namespace == DEFAULT_NAMESPACE
        waiting = (await stores.dirty.pending(index_version.id)).total if index_version and is_whole else 0
        under_way = f"{waiting:,} items wait for a worker" if waiting else ""
        statuses.append(
            _status_of("tools", collection, index_version.state.value if index_version else "", under_way)
        )
    return statuses


async def _document_indexes(live: LiveIndex, stores: Stores) -> list[IndexStatus]:
    """List the versions, the live one also if it is lost. Opening it sets an alias that a restore left out."""
    alias, record = live.settings.qdrant_documents_alias, live.versions
    statuses = list[IndexStatus]()
    try:
        await live.open()
    except IndexLost as error:
        name = await live.name() or alias
        statuses.append(IndexStatus("documents", name, "lost", "", 0, 0, error.hint))
    recorded: Mapping[str, DocumentVersion] = {version.name: version for version in await record.all()}
    lost = {status.collection for status in statuses}
    for collection in await _find_collections(stores, alias):
        if collection.origin.collection in lost:
            continue
        version = recorded.get(collection.origin.collection)
        under_way = "" if version is None else _progress_of(version, await record.pending(version.name))
        statuses.append(_status_of("documents", collection, version.state.value if version else "", under_way))
    return statuses


def _progress_of(version: DocumentVersion, changes: int) -> str:
    progress = [f"{changes:,} changes to bring over"] if changes else []
    if version.state is VersionState.BUILDING:
        position = version.position
        progress.insert(
            0,
            "filled"
            if position.done
            else f"filled up to tenant {position.tenant}"
            if position.tenant
            else "being filled",
        )
    return ", ".join(progress)


async def _find_collections(stores: Stores, alias: str) -> Sequence[CollectionInfo]:
    return await list_collections(stores.qdrant, alias)


def _status_of(product: str, collection: CollectionInfo, state: str = "", under_way: str = "") -> IndexStatus:
    """Return the status. Without a recorded state the alias decides whether it is live."""
    state = state or ("live" if collection.is_live else "previous")
    name, model = collection.origin.collection, collection.origin.model.name
    return IndexStatus(product, name, state, model, collection.points, collection.shards, under_way)
