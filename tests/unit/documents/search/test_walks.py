"""A walk with cursors, while others write: whoever stays is met once, whoever leaves is not met after that."""

import random
from typing import Any

import pytest

from tests.unit.documents.search.builders import CARD, Shelf, document, long_text
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.documents.model.query import FIRST_PAGE
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.testing import MemoryDocuments

pytestmark = pytest.mark.slow

WORDS = ("tax", "wage", "cat", "river", "engine", "music", "winter", "paper")
KINDS: list[dict[str, Any]] = [
    {},
    {"text": "tax river", "search_type": SearchType.SEMANTIC},
    {"text": "tax river", "search_type": SearchType.KEYWORD},
    {"text": "tax river", "fusion": Fusion.RRF},
    {"text": "tax river", "fusion": Fusion.ZSCORE},
    {"text": "tax river", "fusion": Fusion.BEST},
]


@pytest.fixture(params=["memory", "qdrant"])
def shelf(request: pytest.FixtureRequest) -> Shelf:
    if request.param == "memory":
        return Shelf(MemoryDocuments(CARD))
    index: QdrantDocuments = request.getfixturevalue("qdrant_documents")
    return Shelf(index)


@pytest.mark.requirement("DOC-007")
@pytest.mark.parametrize("options", KINDS, ids=lambda one: "-".join(str(value) for value in one.values()) or "all")
@pytest.mark.parametrize("seed", range(2))
async def test_each_document_that_stays_is_met_once(shelf: Shelf, options: dict[str, Any], seed: int) -> None:
    draw = random.Random(seed)
    world = World(shelf, draw)
    await world.begin(60)
    met, cursor = list[str](), FIRST_PAGE
    while cursor:
        answer = await shelf.ask(cursor=cursor, top_k=draw.randint(1, 9), **options)
        page = [hit.id for hit in answer.hits]
        assert not set(page) & world.gone, "a document was met after it had left"
        met += page
        cursor = answer.next_cursor
        await world.change(draw.randint(0, 6))
    assert len(met) == len(set(met)), "a document was met twice"
    matching = world.matching_from_the_start(by_words=options.get("search_type") is SearchType.KEYWORD)
    assert matching <= set(met)


async def test_without_changes_a_walk_is_the_same_as_one_large_page(shelf: Shelf) -> None:
    await World(shelf, random.Random(5)).begin(40)
    for options in KINDS[1:]:
        assert await shelf.walk(top_k=7, **options) == await shelf.found(top_k=100, **options)


async def test_offsets_are_the_same_pages(shelf: Shelf) -> None:
    await World(shelf, random.Random(6)).begin(40)
    whole = await shelf.found("tax river", top_k=40)
    pages = [await shelf.found("tax river", top_k=7, offset=offset) for offset in range(0, 42, 7)]
    assert [id_ for page in pages for id_ in page] == whole


class World:
    """What others write while somebody walks, and who has been there all the time."""

    def __init__(self, shelf: Shelf, draw: random.Random) -> None:
        self._shelf = shelf
        self._draw = draw
        self._there: dict[str, set[str]] = {}
        self._made = 0
        self._from_the_start: dict[str, set[str]] = {}
        self.gone: set[str] = set()

    async def begin(self, count: int) -> None:
        for _ in range(0, count, 20):
            await self._put([self._new() for _ in range(20)])
        self._from_the_start = dict(self._there)

    async def change(self, times: int) -> None:
        for _ in range(times):
            await self._draw.choice((self._add, self._update, self._remove))()

    def matching_from_the_start(self, *, by_words: bool) -> set[str]:
        """Those that were there when the walk began, and matched then, and have not left."""
        stayed = {id_: words for id_, words in self._from_the_start.items() if id_ not in self.gone}
        return {id_ for id_, words in stayed.items() if not by_words or words & {"tax", "river"}}

    async def _add(self) -> None:
        await self._put([self._new()])

    async def _update(self) -> None:
        await self._put([self._draw.choice(list(self._there))])

    async def _remove(self) -> None:
        id_ = self._draw.choice(list(self._there))
        del self._there[id_]
        self.gone.add(id_)
        assert await self._shelf.service.remove(self._shelf.principal, [id_]) == [id_]

    def _new(self) -> str:
        self._made += 1
        return f"document-{self._made}"

    async def _put(self, ids: list[str]) -> None:
        documents = []
        for id_ in ids:
            words = self._draw.sample(WORDS, self._draw.randint(1, 3))
            passages = self._draw.choice((1, 1, 1, 2, 4))
            self._there[id_] = set(words[:passages])
            documents.append(document(id_, long_text(words, passages), number=self._draw.randint(0, 9)))
        await self._shelf.put(*documents)
