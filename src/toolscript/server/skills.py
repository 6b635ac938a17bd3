"""Wiring of skills: management, classifiers, the skills that ship, and the copy in memory."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

from toolscript.core.errors import SetupError
from toolscript.core.items import AssignedBy
from toolscript.core.llm.model import Spending, cost
from toolscript.core.retrieval.model import IndexCard, IndexOrigin
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill
from toolscript.core.values import OnProgress
from toolscript.server.catalog_store import open_catalog_pool
from toolscript.server.settings import load_settings
from toolscript.server.stores import CatalogStores, embedder_of, open_embedder, open_stores, text_model
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing import versions
from toolscript.tools.indexing.points import SkillPoints
from toolscript.tools.model.catalog import GenerationState
from toolscript.tools.model.centroids import Rebuilt
from toolscript.tools.model.skill_json import skills_from_text
from toolscript.tools.ports import Classifier
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.skills import importing
from toolscript.tools.skills.importing import LoadedSkills, SkillImport, read_skills, skills_to_text, write_skills
from toolscript.tools.skills.management import (
    Follow,
    NearestSkills,
    OpenEmbedder,
    Routing,
    SkillManagement,
    all_skills,
)

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AskSkills:
    """Does one thing after another with skills, for a caller that waits for a person in between."""

    runner: asyncio.Runner
    management: SkillManagement

    def __call__(self, action: Callable[[SkillManagement], Awaitable[T]]) -> T:
        async def act() -> T:
            return await action(self.management)

        return self.runner.run(act())


@contextmanager
def open_skills() -> Iterator[AskSkills]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield AskSkills(runner, runner.run(_open_management(stack)))
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
    """How many, and their text where no file was named."""

    async def run(management: SkillManagement) -> tuple[int, str]:
        skills = [entry.skill async for entry in all_skills(management.taxonomy)]
        if path is None:
            return len(skills), skills_to_text(skills)
        write_skills(path, skills)
        return len(skills), ""

    with open_skills() as ask:
        return ask(run)


def reclassify(*, skill_id: str | None, source: str | None, on_progress: OnProgress) -> int:
    wanted = None if source is None else AssignedBy(source)

    async def run(management: SkillManagement) -> int:
        everything = skill_id is None and wanted is None
        return await importing.reclassify_all(
            management.assignments,
            skill_id=skill_id,
            source=wanted,
            total=await management.catalog.count() if everything else None,
            on_progress=on_progress,
        )

    with open_skills() as ask:
        return ask(run)


def rebuild_skills(only: Collection[str], *, on_progress: OnProgress) -> Rebuilt:
    """An exact recount in the live index; it needs no model, for items keep their vectors."""

    async def run() -> Rebuilt:
        async with open_stores(load_settings()) as stores:
            for skill_id in only:
                await stores.taxonomy.find(skill_id)
            known = await stores.dirty.generations()
            live = next((generation for generation in known if generation.state is GenerationState.LIVE), None)
            if live is None:
                raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
            return await stores.skill_vectors.rebuild(live.id, only, on_progress)

    return asyncio.run(run())


def default_skills() -> list[Skill]:
    """Those that come with the package."""
    return skills_from_text(
        resources.files("toolscript.core").joinpath("default_taxonomy.json").read_text("utf-8")
    )


def load_default_skills(settings: Settings) -> LoadedSkills:
    """Asks nothing but PostgreSQL: a schema can be made before the other engine is there."""

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
        _following(stores, embedder),
    )


def _following(stores: CatalogStores, open_model: OpenEmbedder) -> Follow:
    async def follow(only: Collection[str]) -> int:
        if await stores.indexes.live() is None:
            raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
        embedder = await open_model()
        card = IndexCard(embedder.model)
        generation, index = await versions.open_skills(stores.indexes, stores.dirty, card)
        return await SkillPoints(stores.skill_vectors, embedder, index, generation.id).follow(only)

    return follow


async def _open_management(stack: AsyncExitStack) -> SkillManagement:
    """A model takes longer to load than most commands take: it is opened when it is first needed."""
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
    """Who classifies, and what the language model has cost so far; None when there is none."""

    classifier: Classifier
    spent: Callable[[], Spending | None] = lambda: None


@asynccontextmanager
async def open_classifier(settings: Settings, embedder: Embedder) -> AsyncIterator[Classifying]:
    rules = RulesClassifier(embedder)
    if not settings.text_url:
        yield Classifying(rules)
        return
    from toolscript.tools.classify.llm import LlmClassifier
    from toolscript.tools.classify.rules import FallbackClassifier

    text = text_model(settings)
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
