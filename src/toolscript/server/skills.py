"""Skills: what people and the HTTP API manage them with, what ships, and the exact recount of their vectors."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

from toolscript.adapters import postgres
from toolscript.adapters.skill_files import read_skills, skills_to_text, write_skills
from toolscript.errors import SetupError
from toolscript.model.assignments import AssignedBy
from toolscript.model.dirty import GenerationState
from toolscript.model.models import IndexCard, IndexOrigin
from toolscript.model.progress import OnProgress
from toolscript.model.skill_json import skills_from_text
from toolscript.model.skill_vectors import Rebuilt
from toolscript.model.skills import Skill
from toolscript.ports import Embedder
from toolscript.service.catalog_alone import open_pool
from toolscript.service.index_models import embedder_of
from toolscript.service.parts import CatalogStores, open_embedder, open_stores
from toolscript.settings.service import Settings, load_settings
from toolscript.sync import generations, skill_import
from toolscript.sync.active_skills import all_skills
from toolscript.sync.nearest_skills import NearestSkills, OpenEmbedder
from toolscript.sync.skill_import import LoadedSkills, SkillImport
from toolscript.sync.skill_management import Follow, Routing, SkillManagement
from toolscript.sync.skill_points import SkillPoints

T = TypeVar("T")


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
        done = await skill_import.import_skills(
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
        return await skill_import.reclassify_all(
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
            live = next((one for one in known if one.state is GenerationState.LIVE), None)
            if live is None:
                raise SetupError("there is no index yet", hint="run `toolscript worker` to build it")
            return await stores.skill_vectors.rebuild(live.id, only, on_progress)

    return asyncio.run(run())


def default_skills() -> list[Skill]:
    """Those that come with the package."""
    return skills_from_text(
        resources.files("toolscript.model").joinpath("default_taxonomy.json").read_text("utf-8")
    )


def load_default_skills(settings: Settings) -> LoadedSkills:
    """Asks nothing but PostgreSQL: a schema can be made before the other engine is there."""

    async def run() -> LoadedSkills:
        async with open_pool(settings) as pool:
            count = await skill_import.load_defaults(postgres.PostgresTaxonomy(pool), default_skills())
            return LoadedSkills(count, bool(await postgres.PostgresCatalog(pool).scan(after=0, limit=1)))

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
        generation, index = await generations.open_skills(stores.indexes, stores.dirty, card)
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
