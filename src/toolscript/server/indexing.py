"""migrate, worker, reindex, doctor."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolscript.errors import SetupError
from toolscript.model.dirty import Generation
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.schema_status import SchemaStatus
from toolscript.ports import Classifier, Embedder
from toolscript.service.classifying import Classifying, open_classifier
from toolscript.service.index_models import embedder_of
from toolscript.service.parts import CatalogStores, Stores, open_embedder, open_stores
from toolscript.service.skills import load_default_skills
from toolscript.service.store_watch import StoreWatch
from toolscript.service.worker_metrics import measured, metrics_served, worker_figures
from toolscript.settings.service import Settings, load_settings
from toolscript.surfaces.logs import configure_logs
from toolscript.sync import generations
from toolscript.sync.doctor import Doctor, Examination
from toolscript.sync.generations import Opened
from toolscript.sync.indexer import Indexer, OnStep, unobserved
from toolscript.sync.item_skills import ItemSkills
from toolscript.sync.skill_import import LoadedSkills
from toolscript.sync.skill_points import SkillPoints
from toolscript.sync.worker import Worker, WorkReport

if TYPE_CHECKING:
    from toolscript.adapters.telemetry.worker_figures import WorkerFigures

logger = logging.getLogger(__name__)


def migrate(*, down_to: str | None, skills: bool) -> tuple[SchemaStatus, LoadedSkills | None]:
    from toolscript.adapters.postgres.migrate import downgrade, upgrade

    settings = load_settings()
    url = settings.postgres_url.get_secret_value()
    if down_to is not None:
        return downgrade(url, down_to), None
    status = upgrade(url)
    return status, load_default_skills(settings) if skills else None


def schema_status(*, down_to: str | None = None) -> SchemaStatus:
    """With `down_to`, a revision that cannot be gone back to is refused."""
    from toolscript.adapters.postgres import revisions

    status = revisions.schema_status(load_settings().postgres_url.get_secret_value())
    if down_to is not None:
        revisions.require_way_down(status, down_to)
    return status


def drain(on_progress: OnProgress) -> WorkReport:
    async def run() -> WorkReport:
        async with open_writer(load_settings()) as writer:
            report = await writer.worker(on_progress).drain()
            return replace(report, language_model=writer.classifying.spent())

    return asyncio.run(run())


def work() -> None:
    settings = load_settings()
    configure_logs(settings.log_level, settings.log_format)

    def log(at: Progress) -> None:
        logger.info("progress", extra={"task": at.task, "done": at.done, "total": at.total})

    async def run() -> None:
        figures = worker_figures(settings)
        async with (
            open_writer(settings, figures) as writer,
            metrics_served(settings, figures, writer.watch(figures)),
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
            return {"dropped": await generations.drop_previous(stores.indexes, stores.dirty)}

    async def build() -> dict[str, object]:
        settings = load_settings()
        async with (
            open_stores(settings) as stores,
            open_embedder(settings) as embedder,
            AsyncExitStack() as stack,
        ):
            card = IndexCard(embedder.model)
            opened = await generations.begin_reindex(stores.indexes, stores.dirty, card, on_progress)
            writer = await stack.enter_async_context(_writer(settings, stores, embedder, opened))
            worker = writer.worker(on_progress)
            async with stores.indexes.items.loading(card):
                await worker.drain()
            # What changed while the engine was building its graph.
            report = await worker.drain()
            if report.left:
                raise await _not_all_indexed(stores, opened.generation, report)
            await generations.switch_to(stores.indexes, stores.dirty, opened.generation)
            # A skill that was changed just before the switch has been written to the index before only.
            await worker.drain()
            return {"live": card.fingerprint, "model": card.model.name, "indexed": report.followed}

    return asyncio.run(drop() if drop_previous else build())


def doctor(*, repair: bool, on_progress: OnProgress) -> Examination:
    async def run() -> Examination:
        settings = load_settings()
        async with open_stores(settings) as stores:
            card = await _live_card(settings, stores)
            opened = await generations.open_for_examination(stores.indexes, stores.dirty, card)
            doctor = Doctor(stores.catalog, stores.dirty, stores.skill_vectors, opened)
            return await doctor.examine(repair=repair, on_progress=on_progress)

    return asyncio.run(run())


@dataclass(frozen=True)
class Writer:
    """A model and the generation it writes."""

    settings: Settings
    stores: Stores
    embedder: Embedder
    classifying: Classifying
    opened: Opened

    def watch(self, figures: "WorkerFigures | None") -> StoreWatch | None:
        return None if figures is None else StoreWatch(self.stores, self.opened.index, figures.stores)

    def worker(self, on_progress: OnProgress, at_step: OnStep = unobserved) -> Worker:
        classifier = self.classifying.classifier
        return worker_of(self.settings, self.stores, self.embedder, classifier, self.opened, on_progress, at_step)


def worker_of(
    settings: Settings,
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
        batch=settings.worker_batch,
        lease_seconds=settings.worker_lease_seconds,
        at_step=at_step,
    )
    skill_points = SkillPoints(stores.skill_vectors, embedder, opened.skills, generation)
    return Worker(indexer, skill_points, stores.suggestions, stores.dirty, generation, on_progress=on_progress)


@asynccontextmanager
async def open_writer(settings: Settings, figures: "WorkerFigures | None" = None) -> AsyncIterator[Writer]:
    async with open_stores(settings) as plain, _model_to_follow(settings, plain) as plain_embedder:
        stores, embedder = measured(plain, plain_embedder, figures)
        card = IndexCard(embedder.model)
        opened = await generations.open_for_writing(stores.indexes, stores.dirty, card)
        async with _writer(settings, stores, embedder, opened) as writer:
            yield writer


@asynccontextmanager
async def _model_to_follow(settings: Settings, stores: Stores) -> AsyncIterator[Embedder]:
    """The configured one, once there is an index of it; until then the one of the live index."""
    async with open_embedder(settings) as configured:
        origin = await stores.indexes.items.origin()
        wanted = IndexCard(configured.model).fingerprint
        if origin is None or any(one.fingerprint == wanted for one in await stores.dirty.generations()):
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
async def _writer(settings: Settings, stores: Stores, embedder: Embedder, opened: Opened) -> AsyncIterator[Writer]:
    async with open_classifier(settings, embedder) as classifying:
        yield Writer(settings, stores, embedder, classifying, opened)


async def _not_all_indexed(stores: Stores, generation: Generation, report: WorkReport) -> SetupError:
    failing = await stores.dirty.failing(generation.id, 5)
    return SetupError(
        f"{report.left} items could not be indexed, so the live index was left as it is",
        hint="run `toolscript reindex` again once the reasons are mended",
        details={"failing": {str(item): reason for item, reason in failing}},
    )
