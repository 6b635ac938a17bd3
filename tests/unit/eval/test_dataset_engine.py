"""A service with skill routing is judged on items classified by rules, and reports the route of a query."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import drop_collections
from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import SetupError
from toolscript.core.items import Item, ItemKind, StoredItem
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.retrieval.model import IndexCard, IndexQuery
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.core.settings.service import Settings
from toolscript.server.skills import default_skills
from toolscript.server.stores import item_layout, skill_layout
from toolscript.testing import HashEmbedder, MemoryIndexes
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.model.query import Strategy
from toolscript_eval.dataset import Dataset, DatasetQuery, EngineAnswer
from toolscript_eval.judging import judge
from toolscript_eval.service import Collections, DatasetSkills, SearchOptions, ServiceEngine, service_engine

pytestmark = pytest.mark.slow

ACTIONS = ("read", "write", "delete", "search", "list")
SUBJECTS = {
    "file": "in a folder of the file system",
    "email": "in the inbox of a mailbox, with attachments",
    "calendar": "with meetings, events and schedules",
    "database": "by an SQL query on a table",
    "repository": "with commits and branches of git",
    "payment": "with invoices and refunds",
    "weather": "with a forecast of rain and temperature",
}
PLACES = ("here", "there", "today", "yesterday", "everywhere", "abroad", "twice", "quickly")
ITEMS = [
    Item(f"{action} {subject} {place}", ItemKind.TOOL, f"{subject}s", f"{action}_{subject}_{place}", text)
    for subject, about in SUBJECTS.items()
    for action in ACTIONS
    for place in PLACES
    for text in (f"{action} a {subject} {about}, {place}",)
]
KEYS = {item.key for item in ITEMS}
WORDS = (*ACTIONS, *SUBJECTS, *PLACES, *(word for about in SUBJECTS.values() for word in about.split()))
BY_SKILLS = (Strategy.HIERARCHICAL, Strategy.HYBRID)


def opened(
    strategy: Strategy, collections: Collections, embedder: HashEmbedder | None = None
) -> AbstractAsyncContextManager[ServiceEngine]:
    return service_engine(collections, embedder or HashEmbedder(), SearchOptions(strategy))


def in_memory(strategy: Strategy) -> Collections:
    return Collections(MemoryIndexes(), None if strategy is Strategy.DIRECT else MemoryIndexes())


@pytest.fixture
async def collections(engines: Settings) -> AsyncIterator[Collections]:
    """Open both collections on the real engine, with the layouts of the service."""
    alias = f"test_{uuid.uuid4().hex[:12]}"
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        yield Collections(
            QdrantIndexes(connected, alias, item_layout(engines)),
            QdrantIndexes(connected, f"{alias}__skills", skill_layout(engines)),
        )
        await drop_collections(connected, alias)


@pytest.mark.parametrize("strategy", Strategy)
async def test_every_strategy_is_judged_on_the_real_engine(collections: Collections, strategy: Strategy) -> None:
    relevant_items = [item for item in ITEMS if item.key.endswith("today")]
    queries = [DatasetQuery(item.key, item.description, {item.key: 1}) for item in relevant_items]
    if strategy is Strategy.DIRECT:
        collections = Collections(collections.items)
    embedder = HashEmbedder()
    async with opened(strategy, collections, embedder) as engine:
        measures = (await judge(engine, Dataset("small", ITEMS, queries), model="hash")).systems[0].measures
    assert measures["hit@1"].value == 1.0
    assert measures["without_gold_auroc"].value > 0.9, "they were not found when they were gone"
    routing = {
        name: measures[name].value for name in ("routed", "catalog_searched", "gold_lost") if name in measures
    }
    if strategy is Strategy.DIRECT:
        assert routing == {}
    else:
        assert routing["routed"] == 1.0
        assert routing["gold_lost"] == 0.0
        assert (routing["catalog_searched"] < 1.0) is (strategy is Strategy.HIERARCHICAL)
    for indexes in filter(None, (collections.items, collections.skills)):
        with pytest.raises(SetupError):
            await indexes.open(IndexCard(embedder.model))


async def test_a_direct_search_costs_no_classification() -> None:
    plain, routed = HashEmbedder(), HashEmbedder()
    async with opened(Strategy.DIRECT, in_memory(Strategy.DIRECT), plain) as engine:
        await engine.load(ITEMS[:50])
        assert (await engine.answer("read a file")).route is None
    async with opened(Strategy.HYBRID, in_memory(Strategy.HYBRID), routed) as engine:
        await engine.load(ITEMS[:50])
    assert routed.texts_embedded >= plain.texts_embedded + len(default_skills())


@pytest.mark.parametrize("strategy", BY_SKILLS)
async def test_the_route_of_a_query_is_reported_exactly(strategy: Strategy) -> None:
    async with opened(strategy, in_memory(strategy)) as engine:
        await engine.load(ITEMS)
        answer = await engine.answer("delete an old email of the inbox")
    route = answer.route
    assert route is not None
    assert (route.strategy, set(route.skills_of)) == (strategy, KEYS)
    assert 0 < len(route.skills) <= 8
    reached = [key for key in KEYS if route.reaches(key)]
    assert route.share == len(reached) / len(KEYS)
    assert set(answer.keys) <= set(reached)
    if strategy is Strategy.HIERARCHICAL:
        assert set(reached) == {key for key in KEYS if set(route.skills_of[key]) & set(route.skills)} < KEYS
    assert "skills" in answer.stages


class CountingIndexes(MemoryIndexes):
    """Counts openings: each opening of a real index samples other terms."""

    opened = 0

    async def open(self, card: IndexCard, namespace: str = DEFAULT_NAMESPACE) -> Index:
        self.opened += 1
        return await super().open(card, namespace)


async def test_other_ways_to_the_same_points_search_the_very_same_index() -> None:
    items = CountingIndexes()
    async with opened(Strategy.HIERARCHICAL, Collections(items, MemoryIndexes())) as engine:
        await engine.load(ITEMS)
        before = items.opened
        for other in (engine.with_strategy(Strategy.DIRECT), engine.with_weights(DEFAULT_WEIGHTS.without("name"))):
            await other.load(ITEMS)
        assert items.opened == before
        assert (await other.answer("read a file")).route is not None
        await engine.load(ITEMS[1:])
        assert items.opened > before


async def test_a_query_that_no_skill_fits_searches_all_items() -> None:
    async with opened(Strategy.HIERARCHICAL, in_memory(Strategy.HIERARCHICAL)) as engine:
        await engine.load(ITEMS)
        answer = await engine.answer("xqzv blorp")
    assert answer.route is not None
    assert (answer.route.is_routed, answer.route.skills, answer.route.share) == (False, (), 1.0)
    assert all(map(answer.route.reaches, KEYS))


async def test_skills_follow_the_items_that_go_and_come_back() -> None:
    embedder = HashEmbedder()
    half = [item for item in ITEMS if "email" not in item.key]
    async with opened(Strategy.HIERARCHICAL, in_memory(Strategy.HIERARCHICAL), embedder) as engine:
        query = "send an email with attachments"
        await engine.load(ITEMS)
        whole = await engine.answer(query)
        await engine.load(half)
        without = await engine.answer(query)
        await engine.load(ITEMS)
        again = await engine.answer(query)
    assert without.route is not None
    assert without.route.skills_of.keys() == {item.key for item in half}
    assert without.keys != whole.keys
    assert (again.keys, again.route) == (whole.keys, whole.route)


async def test_points_of_skills_are_those_of_the_items_that_are_left() -> None:
    embedder = HashEmbedder()
    stored = [StoredItem(number, 1, item) for number, item in enumerate(ITEMS, 1)]
    vectors = await embed_items(embedder, ITEMS)
    indexes = [MemoryIndex(IndexCard(embedder.model)) for _ in range(2)]
    shrunk, fresh = (DatasetSkills(embedder, default_skills()) for _ in range(2))
    await shrunk.settled(stored, vectors)
    await shrunk.index_skills(indexes[0])
    shrunk.forget([item.id for item in stored[100:]])
    await shrunk.index_skills(indexes[0])
    await fresh.settled(stored[:100], vectors[:100])
    await fresh.index_skills(indexes[1])
    ids = [skill.point_id for skill in default_skills()]
    assert await indexes[0].fields(ids) == await indexes[1].fields(ids)
    assert sum(int(str(payload["tool_count"])) for payload in (await indexes[1].fields(ids)).values()) >= 100
    directions = [IndexQuery(vector=vector, limit=len(ids)) for vector in vectors[::10]]
    results = [await index.search_all(directions) for index in indexes]
    left, right = (
        [[(hit.id, hit.score) for hit in candidates.dense or ()] for candidates in answers] for answers in results
    )
    assert left == right


Engines = tuple[ServiceEngine, ServiceEngine]


@pytest.fixture(scope="module")
def direct_and_hybrid() -> Engines:
    async def loaded(strategy: Strategy) -> ServiceEngine:
        async with opened(strategy, in_memory(strategy)) as engine:
            await engine.load(ITEMS)
            return engine

    return asyncio.run(loaded(Strategy.DIRECT)), asyncio.run(loaded(Strategy.HYBRID))


@pytest.mark.nightly
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_hybrid_begins_with_what_direct_finds_in_the_same_order(
    direct_and_hybrid: Engines, words: list[str]
) -> None:
    async def ask() -> tuple[EngineAnswer, EngineAnswer]:
        direct, hybrid = direct_and_hybrid
        return await direct.answer(" ".join(words)), await hybrid.answer(" ".join(words))

    direct, hybrid = asyncio.run(ask())
    assert hybrid.keys[: len(direct.keys)] == direct.keys
