"""Each namespace has its own copy of the skill index, which answers as the index does and follows its changes."""

import pytest

from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import Candidates, IndexCard, IndexQuery
from toolscript.core.retrieval.namespaced import NamespacedIndex
from toolscript.core.settings.service import Settings
from toolscript.server.demo_contents import memory_stores
from toolscript.server.indexing import worker_of
from toolscript.server.skills import default_skills, skill_management
from toolscript.server.stores import CatalogStores
from toolscript.server.wiring import refresh_copy_after_changes, skill_index_to_search
from toolscript.testing import HashEmbedder
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.indexing.versions import Opened, open_for_writing
from toolscript.tools.skill_copy import SkillCopy
from toolscript.tools.skills.importing import load_defaults

pytestmark = pytest.mark.requirement("AP-005")

EMBEDDER = HashEmbedder()


async def opened_catalog() -> tuple[CatalogStores, Opened]:
    stores = memory_stores()
    await load_defaults(stores.taxonomy, default_skills())
    for namespace, word in (("default", "email"), ("blue", "calendar")):
        await stores.catalog.of(namespace).store(
            "file", [Item("1", ItemKind.TOOL, "server", word, f"Send {word}")]
        )
    opened = await open_for_writing(stores.indexes, stores.dirty, IndexCard(EMBEDDER.model))
    await worker_of(stores, EMBEDDER, RulesClassifier(EMBEDDER), opened).drain()
    return stores, opened


async def nearest(skills: NamespacedIndex, namespace: str) -> Candidates:
    ask = IndexQuery(await EMBEDDER.embed_query("send email"), limit=100)
    return await skills.within((namespace,)).search(ask)


def scores(found: Candidates) -> dict[int, float]:
    return {hit.id: round(hit.score, 5) for hit in found.dense or ()}


@pytest.mark.parametrize("namespace", ["default", "blue"])
async def test_a_copy_has_the_skills_of_its_namespace(namespace: str) -> None:
    stores, opened = await opened_catalog()
    skills = skill_index_to_search(Settings(skill_copy=True), stores, opened.skills)
    before = scores(await nearest(skills, namespace))
    copies = [copy for copy in skills.opened if isinstance(copy, SkillCopy)]
    for copy in copies:
        await copy.check()
        assert copy._copy is not None
    assert len(copies) == {"default": 1, "blue": 2}[namespace]
    assert scores(await nearest(skills, namespace)) == before == scores(await nearest(opened.skills, namespace))
    assert len(before) == {"default": len(default_skills()), "blue": 1}[namespace]


async def test_a_change_of_skills_invalidates_the_copies_of_all_namespaces() -> None:
    stores, opened = await opened_catalog()
    skills = skill_index_to_search(Settings(skill_copy=True), stores, opened.skills)
    await nearest(skills, "blue")
    copies = [copy for copy in skills.opened if isinstance(copy, SkillCopy)]
    for copy in copies:
        await copy.check()

    async def embedder() -> HashEmbedder:
        return EMBEDDER

    management = refresh_copy_after_changes(skill_management(stores, embedder), skills)
    await management.index_skills(["email"])
    assert len(copies) == 2
    assert [copy._copy for copy in copies] == [None, None]


async def test_without_the_setting_there_is_no_copy() -> None:
    stores, opened = await opened_catalog()
    assert skill_index_to_search(Settings(skill_copy=False), stores, opened.skills) is opened.skills
