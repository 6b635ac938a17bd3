"""Paging with cursors during writes: a remaining document comes once, a removed one never after its removal."""

import random
from typing import Any

import pytest

from tests.unit.documents.search.builders import CARD, Corpus, document, long_text
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
def corpus(request: pytest.FixtureRequest) -> Corpus:
    if request.param == "memory":
        return Corpus(MemoryDocuments(CARD))
    index: QdrantDocuments = request.getfixturevalue("qdrant_documents")
    return Corpus(index)


@pytest.mark.requirement("DOC-007")
@pytest.mark.parametrize(
    "options", KINDS, ids=lambda options: "-".join(str(value) for value in options.values()) or "all"
)
@pytest.mark.parametrize("seed", range(2))
async def test_paging_returns_each_remaining_document_once(
    corpus: Corpus, options: dict[str, Any], seed: int
) -> None:
    draw = random.Random(seed)
    writes = ConcurrentWrites(corpus, draw)
    await writes.begin(60)
    returned, cursor = list[str](), FIRST_PAGE
    while cursor:
        answer = await corpus.ask(cursor=cursor, top_k=draw.randint(1, 9), **options)
        page = [hit.id for hit in answer.hits]
        assert not set(page) & writes.gone, "a document was returned after its removal"
        returned += page
        cursor = answer.next_cursor
        await writes.change(draw.randint(0, 6))
    assert len(returned) == len(set(returned)), "a document was returned twice"
    matching = writes.matching_at_start(by_words=options.get("search_type") is SearchType.KEYWORD)
    assert matching <= set(returned)


async def test_without_changes_all_pages_equal_one_large_page(corpus: Corpus) -> None:
    await ConcurrentWrites(corpus, random.Random(5)).begin(40)
    for options in KINDS[1:]:
        assert await corpus.walk(top_k=7, **options) == await corpus.found(top_k=100, **options)


async def test_offsets_are_the_same_pages(corpus: Corpus) -> None:
    await ConcurrentWrites(corpus, random.Random(6)).begin(40)
    whole = await corpus.found("tax river", top_k=40)
    pages = [await corpus.found("tax river", top_k=7, offset=offset) for offset in range(0, 42, 7)]
    assert [id_ for page in pages for id_ in page] == whole


class ConcurrentWrites:
    """Concurrent writes during paging, and the documents that exist the whole time."""

    def __init__(self, corpus: Corpus, draw: random.Random) -> None:
        self._corpus = corpus
        self._draw = draw
        self._stored: dict[str, set[str]] = {}
        self._made = 0
        self._at_start: dict[str, set[str]] = {}
        self.gone: set[str] = set()

    async def begin(self, count: int) -> None:
        for _ in range(0, count, 20):
            await self._put([self._new() for _ in range(20)])
        self._at_start = dict(self._stored)

    async def change(self, times: int) -> None:
        for _ in range(times):
            await self._draw.choice((self._add, self._update, self._remove))()

    def matching_at_start(self, *, by_words: bool) -> set[str]:
        """Documents that existed and matched at the start, and were not removed."""
        stayed = {id_: words for id_, words in self._at_start.items() if id_ not in self.gone}
        return {id_ for id_, words in stayed.items() if not by_words or words & {"tax", "river"}}

    async def _add(self) -> None:
        await self._put([self._new()])

    async def _update(self) -> None:
        await self._put([self._draw.choice(list(self._stored))])

    async def _remove(self) -> None:
        id_ = self._draw.choice(list(self._stored))
        del self._stored[id_]
        self.gone.add(id_)
        assert await self._corpus.service.remove(self._corpus.principal, [id_]) == [id_]

    def _new(self) -> str:
        self._made += 1
        return f"document-{self._made}"

    async def _put(self, ids: list[str]) -> None:
        documents = []
        for id_ in ids:
            words = self._draw.sample(WORDS, self._draw.randint(1, 3))
            chunks = self._draw.choice((1, 1, 1, 2, 4))
            self._stored[id_] = set(words[:chunks])
            documents.append(document(id_, long_text(words, chunks), number=self._draw.randint(0, 9)))
        await self._corpus.put(*documents)
