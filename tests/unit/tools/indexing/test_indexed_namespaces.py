"""Items of several namespaces, indexed by one worker: each namespace has its points, skills and classification."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.unit.tools.indexing.builders import KeywordClassifier, PickyEmbedder, Scene, tool
from toolscript.core.retrieval.model import IndexCard, Matrix, Point, PointVersion
from toolscript.core.taxonomy import Classification, Skill, Unclassified
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.versions import begin_reindex, drop_previous, switch_to
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.query import SkillQuery, Strategy, ToolQuery
from toolscript.tools.search import MAX_OTHERS, ToolSearch

pytestmark = pytest.mark.requirement("AP-005")

MAIL = Skill("mail", "Mail", "Letters and post.", keywords=("letter",))
MAPS = Skill("maps", "Maps", "Places on earth.", keywords=("place",))


COLOURS = ("default", "blue", "red")


class WatchedEmbedder(PickyEmbedder):
    """Records the colours that are embedded together."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[list[str]] = []

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        self.together.append([colour for colour in COLOURS if any(f"colour {colour}" in text for text in texts)])
        return await super().embed_texts(texts)


class ApartClassifier(KeywordClassifier):
    """Refuses to classify items that name two colours at once."""

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        assert len({unclassified.item.name.partition("_")[0] for unclassified in items}) == 1
        return await super().classify(items, skills)


async def filled() -> Scene:
    """Return a catalog with items of three namespaces, of one name and of one's own, all indexed."""
    scene = Scene()
    scene.classifier = ApartClassifier()
    for skill in (MAIL, MAPS):
        await scene.taxonomy.add(skill, "ann")
    await scene.catalog.store("file", [tool("default_same", "Send a letter"), tool("default_map", "Find a place")])
    for namespace, words in (("blue", "Send a letter"), ("red", "Find a place")):
        own = [tool(f"{namespace}_same", words), tool(f"{namespace}_{namespace}", words)]
        await scene.catalog.of(namespace).store("file", own)
    await scene.drain()
    return scene


async def searching(scene: Scene) -> ToolSearch:
    opened = await scene.open()
    return ToolSearch(scene.embedder, opened.index, opened.skills, scene.catalog)


def query(*namespaces: str, text: str = "send a letter", strategy: Strategy = Strategy.HYBRID) -> ToolQuery:
    return ToolQuery(text, threshold=0.0, limit=50, skill_threshold=0.0, strategy=strategy, namespaces=namespaces)


def names(answer: ToolAnswer) -> set[str]:
    return {hit.name for hit in answer.hits}


@pytest.mark.parametrize("strategy", list(Strategy))
async def test_a_search_finds_the_items_of_its_namespaces(strategy: Strategy) -> None:
    search = await searching(await filled())
    blue = await search.search(query("blue", strategy=strategy))
    assert names(blue) == {"blue_same", "blue_blue"}
    both = await search.search(query("red", "blue", "default", strategy=Strategy.DIRECT))
    assert len(both.hits) == 6
    assert names(await search.search(query("default", strategy=Strategy.DIRECT))) == {
        "default_same",
        "default_map",
    }


@pytest.mark.parametrize("namespaces", [(), ("absent",)])
async def test_no_namespace_and_an_unknown_one_answer_like_an_empty_catalog(namespaces: tuple[str, ...]) -> None:
    search = await searching(await filled())
    answer = await search.search(query(*namespaces))
    assert (answer.hits, answer.near_misses, answer.skills, answer.degraded) == ((), (), (), ())
    assert (answer.candidate_count, answer.unskilled_count) == (0, 0)
    assert (await search.skills(SkillQuery("letter", threshold=0.0, namespaces=namespaces))).skills == ()


async def test_a_skill_counts_its_items_in_the_namespaces_only() -> None:
    search = await searching(await filled())

    async def counts(*namespaces: str) -> dict[str, int]:
        answer = await search.skills(SkillQuery("send a letter", threshold=0.0, namespaces=namespaces))
        return {skill.id: skill.tool_count for skill in answer.skills}

    assert await counts("default") == {"mail": 1, "maps": 1}
    assert await counts("blue") == {"mail": 2}
    assert await counts("red") == {"maps": 2}
    assert await counts("blue", "default") == {"mail": 3, "maps": 1}
    assert await counts("blue", "default", "red") == {"mail": 3, "maps": 3}


async def test_a_skill_without_items_in_a_namespace_is_not_matched_there() -> None:
    scene = await filled()
    await scene.catalog.of("blue").keep_only("file", [])
    await scene.drain()
    search = await searching(scene)
    assert (await search.skills(SkillQuery("letter", threshold=0.0, namespaces=("blue",)))).skills == ()
    answer = await search.search(query("blue", strategy=Strategy.HIERARCHICAL))
    assert (answer.hits, answer.skills) == ((), ())
    assert (await (await scene.doctor()).examine()).healthy


async def test_why_not_knows_only_the_items_of_the_namespaces() -> None:
    scene = await filled()
    search = await searching(scene)
    (blue, *_) = (await search.search(query("blue"))).hits

    async def absence(about: str, *namespaces: str) -> tuple[str, object, tuple[str, ...]]:
        asked = ToolQuery("send a letter", threshold=0.0, about=about, namespaces=namespaces)
        found = (await search.search(asked)).absence
        assert found is not None
        return found.reason.value, found.id, found.others

    assert (await absence(str(blue.id), "blue"))[1] == blue.id
    assert await absence(str(blue.id), "default") == await absence("999999", "default")
    unknown = await absence("server__blue_blue", "red")
    assert unknown[:2] == ("unknown", None)
    assert all("blue" not in other for other in unknown[2])


async def test_removed_items_leave_their_namespace() -> None:
    scene = await filled()
    await scene.catalog.of("blue").remove("file", ["blue_blue"])
    await scene.drain()
    search = await searching(scene)
    assert names(await search.search(query("blue"))) == {"blue_same"}
    assert (await search.skills(SkillQuery("letter", threshold=0.0, namespaces=("blue",)))).skills[
        0
    ].tool_count == 1


async def test_texts_of_two_namespaces_are_not_embedded_together() -> None:
    embedder = WatchedEmbedder()
    scene = Scene(embedder=embedder)
    for namespace in COLOURS:
        await scene.catalog.of(namespace).store("file", [tool("same", f"colour {namespace}")])
    await scene.drain()
    assert sorted(embedder.together) == [["blue"], ["default"], ["red"]]


@pytest.mark.requirement("SK-009")
async def test_a_point_in_the_wrong_namespace_is_found_and_repaired() -> None:
    scene = await filled()
    index = await scene.index()
    (wanderer,) = [each for each in await index.scan(0, 100) if each.namespace == "blue"][:1]
    (point,) = [each for each in await (await scene.open()).index.whole(100) or () if each.id == wanderer.id]
    moved = Point(point.id, wanderer.version, point.vector, {}, point.fields, "red")
    await index.put([moved])
    twice = await (await scene.doctor()).examine()
    assert (twice.missing, twice.extra, twice.stale) == (0, 1, 0)
    await index.remove([replace(wanderer, namespace="blue")])
    elsewhere = await (await scene.doctor()).examine(repair=True)
    assert (elsewhere.missing, elsewhere.extra, elsewhere.stale) == (1, 1, 0)
    await scene.drain()
    assert (await (await scene.doctor()).examine()).healthy
    assert await places(scene, wanderer.id) == ["blue"]


async def places(scene: Scene, id_: int) -> list[str | None]:
    page: Sequence[PointVersion] = await (await scene.index()).scan(id_ - 1, 1)
    return [each.namespace for each in page if each.id == id_]


async def test_a_new_index_version_has_the_same_namespaces() -> None:
    scene = await filled()
    other = HashEmbedder("other")
    opened = await begin_reindex(scene.indexes, scene.dirty, IndexCard(other.model))
    await (await scene.worker(opened=opened, embedder=other)).drain(patience_seconds=0)
    await switch_to(scene.indexes, scene.dirty, opened.index_version)
    search = ToolSearch(other, opened.index, opened.skills, scene.catalog)
    assert names(await search.search(query("blue"))) == {"blue_same", "blue_blue"}
    await drop_previous(scene.indexes, scene.dirty)
    assert await scene.indexes.items.namespaces(scene.card) == []


async def test_only_some_sets_of_namespaces_keep_their_caches() -> None:
    search = await searching(await filled())
    for number in range(2 * MAX_OTHERS):
        await search.search(query("blue", f"absent-{number}"))
    assert len(search._others) == MAX_OTHERS
    assert names(await search.search(query("blue", "blue"))) == {"blue_same", "blue_blue"}
