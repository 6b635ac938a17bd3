"""Wiring of skills: management, classifiers and the default skills."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolscript.core.errors import SetupError
from toolscript.core.items import AssignedBy
from toolscript.core.llm.model import Spending, cost
from toolscript.core.retrieval.model import IndexCard, IndexOrigin
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import EnhancedDescription, Skill
from toolscript.core.values import OnProgress
from toolscript.server.audit import recorded
from toolscript.server.catalog_store import open_catalog_pool
from toolscript.server.settings import load_settings
from toolscript.server.stores import CatalogStores, embedder_of, open_embedder, open_stores, text_model
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing import versions
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.model.catalog import IndexVersionState
from toolscript.tools.model.centroids import Rebuilt
from toolscript.tools.model.proposals import Proposal, Submitted
from toolscript.tools.model.skill_json import skills_from_text
from toolscript.tools.ports import Classifier
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.skills import importing
from toolscript.tools.skills.describing import Describer
from toolscript.tools.skills.importing import LoadedSkills, SkillImport, read_skills, skills_to_text, write_skills
from toolscript.tools.skills.management import (
    IndexSkills,
    NearestSkills,
    OpenEmbedder,
    Routing,
    SkillManagement,
    all_skills,
)
from toolscript.tools.skills.proposer import Proposer, SkillNamer

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SkillSession:
    """Runs one action after another on skills, for a synchronous caller that waits for user input in between."""

    runner: asyncio.Runner
    management: SkillManagement

    def __call__(self, action: Callable[[SkillManagement], Awaitable[T]]) -> T:
        async def act() -> T:
            return await action(self.management)

        return self.runner.run(act())


@contextmanager
def open_skills() -> Iterator[SkillSession]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield SkillSession(runner, runner.run(_open_management(stack)))
        finally:
            runner.run(stack.aclose())


def import_skills(path: Path, *, replace: bool, by: str, on_progress: OnProgress) -> tuple[SkillImport, Routing]:
    skills = read_skills(path)

    async def run(management: SkillManagement) -> tuple[SkillImport, Routing]:
        done = await importing.import_skills(
            management.taxonomy, skills, by, replace_all=replace, on_progress=on_progress
        )
        return done, await management.route(done.written)

    with open_skills() as ask:
        return ask(run)


def export_skills(path: Path | None) -> tuple[int, str]:
    """Return the number of skills, and their JSON text if no file was named."""

    async def run(management: SkillManagement) -> tuple[int, str]:
        skills = [entry.skill async for entry in all_skills(management.taxonomy)]
        if path is None:
            return len(skills), skills_to_text(skills)
        write_skills(path, skills)
        return len(skills), ""

    with open_skills() as ask:
        return ask(run)


def reclassify(*, skill_id: str | None, source: str | None, on_progress: OnProgress) -> int:
    assigned_by = None if source is None else AssignedBy(source)

    async def run(management: SkillManagement) -> int:
        everything = skill_id is None and assigned_by is None
        return await importing.reclassify_all(
            management.assignments,
            skill_id=skill_id,
            source=assigned_by,
            total=await management.catalog.count() if everything else None,
            on_progress=on_progress,
        )

    with recorded("skills.reclassify", skill_id or source or "all", None) as change, open_skills() as ask:
        change.count = ask(run)
    return change.count


def rebuild_skills(only: Collection[str], *, on_progress: OnProgress) -> Rebuilt:
    """Recompute the centroids in the live index exactly, from the stored vectors and without a model."""

    async def run() -> Rebuilt:
        async with open_stores(load_settings()) as stores:
            for skill_id in only:
                await stores.taxonomy.find(skill_id)
            return await stores.skill_vectors.rebuild(await _live_version(stores), only, on_progress)

    return asyncio.run(run())


def propose_skills(
    *, namespace: str, is_dry_run: bool, on_progress: OnProgress
) -> tuple[list[Proposal], Submitted | None]:
    """Propose skills from the live index; put them into the queue unless it is a dry run."""

    async def run() -> tuple[list[Proposal], Submitted | None]:
        settings = load_settings()
        async with open_stores(settings) as stores, _open_names(settings) as names:
            live = await _live_version(stores)
            proposer = Proposer(stores.taxonomy, stores.skill_vectors, stores.suggestions, live, names)
            proposals = await proposer.propose(namespace, on_progress)
            if is_dry_run:
                return proposals, None
            return proposals, await stores.suggestions.submit(proposals, namespace)

    with recorded("skills.propose", namespace, namespace) as change:
        proposals, submitted = asyncio.run(run())
        change.count = submitted.added if submitted else 0
    return proposals, submitted


def describe_skills(*, namespace: str, on_progress: OnProgress) -> list[EnhancedDescription]:
    """Describe new and changed skills by their items."""

    async def run() -> list[EnhancedDescription]:
        settings = load_settings()
        async with open_stores(settings) as stores, _open_names(settings) as names:
            return await Describer(stores.taxonomy, names).describe(namespace, on_progress)

    with recorded("skills.describe", namespace, namespace) as change:
        described = asyncio.run(run())
        change.count = len(described)
    return described


@asynccontextmanager
async def _open_names(settings: Settings) -> AsyncIterator[SkillNamer | None]:
    """Open the language model that names and describes skills, if one is configured."""
    if not settings.text_url:
        yield None
        return
    text = text_model(settings)
    try:
        yield SkillNamer(text)
    finally:
        await text.close()


async def _live_version(stores: CatalogStores) -> int:
    for index_version in await stores.dirty.index_versions():
        if index_version.state is IndexVersionState.LIVE:
            return index_version.id
    raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")


def default_skills() -> list[Skill]:
    """Return the skills that ship with the package."""
    return skills_from_text(
        resources.files("toolscript.core").joinpath("default_taxonomy.json").read_text("utf-8")
    )


def load_default_skills(settings: Settings) -> LoadedSkills:
    """Load the default skills. Needs PostgreSQL only, so that it works before Qdrant runs."""

    async def run() -> LoadedSkills:
        async with open_catalog_pool(settings) as pool:
            count = await importing.load_defaults(PostgresTaxonomy(pool), default_skills())
            return LoadedSkills(count, bool(await PostgresCatalog(pool).scan(after=0, limit=1)))

    return asyncio.run(run())


def skill_management(stores: CatalogStores, embedder: OpenEmbedder) -> SkillManagement:
    return SkillManagement(
        stores.taxonomy,
        stores.assignments,
        stores.suggestions,
        stores.catalog,
        NearestSkills(stores.taxonomy, embedder),
        _skill_indexer(stores, embedder),
    )


def _skill_indexer(stores: CatalogStores, open_model: OpenEmbedder) -> IndexSkills:
    async def index_skills(only: Collection[str]) -> int:
        if await stores.indexes.live() is None:
            raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
        embedder = await open_model()
        card = IndexCard(embedder.model)
        index_version, index = await versions.open_skills(stores.indexes, stores.dirty, card)
        return await SkillPoints(stores.skill_vectors, embedder, index, index_version.id).index_stale(only)

    return index_skills


async def _open_management(stack: AsyncExitStack) -> SkillManagement:
    """Open skill management. The model loads on first use: that takes longer than most commands."""
    settings = load_settings()
    stores = await stack.enter_async_context(open_stores(settings))
    opened: list[Embedder] = []

    async def open_once() -> Embedder:
        if not opened:
            configured = await stack.enter_async_context(open_embedder(settings))
            origin = await stores.indexes.items.origin() or IndexOrigin("", configured.model)
            live = embedder_of(origin, settings, configured, "tools")
            opened.append(await stack.enter_async_context(live))
        return opened[0]

    return skill_management(stores, open_once)


@dataclass(frozen=True)
class Classifying:
    """The classifier, and the cost of its language model so far; None without one."""

    classifier: Classifier
    spent: Callable[[], Spending | None] = lambda: None


@asynccontextmanager
async def open_classifier(
    settings: Settings, embedder: Embedder, transport: "AsyncBaseTransport | None" = None
) -> AsyncIterator[Classifying]:
    """Open the configured classifier. `transport` answers instead of the language model's endpoint."""
    rules = RulesClassifier(embedder)
    if not settings.text_url:
        yield Classifying(rules)
        return
    from toolscript.tools.classify.llm import LlmClassifier
    from toolscript.tools.classify.rules import FallbackClassifier

    text = text_model(settings, transport=transport)
    model = LlmClassifier(
        text,
        rules,
        concurrency=settings.classify_concurrency,
        token_budget=settings.classify_token_budget,
    )

    def spent() -> Spending:
        return Spending(text.usage, cost(text.usage, settings.classify_price_in, settings.classify_price_out))

    try:
        yield Classifying(FallbackClassifier(model, rules), spent)
    finally:
        logger.info("language model used", extra={**asdict(text.usage), "cost": spent().cost})
        await text.close()
