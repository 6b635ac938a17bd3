"""The double and the engine give a small real catalog the same scores, with both retrievers."""

import pytest

from toolscript.core.embedding.items import embed_items
from toolscript.core.item_text import item_terms
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.model import Candidate, IndexCard, IndexQuery, Point
from toolscript.core.retrieval.ports import Index, Indexes
from toolscript.core.retrieval.terms import query_terms
from toolscript.testing import HashEmbedder, MemoryIndexes

CATALOG = {
    "read_file": "Read the complete contents of a file from the file system.",
    "write_file": "Create a new file or completely overwrite an existing file with new content.",
    "list_directory": "Get a detailed listing of all files and directories in a specified path.",
    "create_issue": "Create a new issue in a GitHub repository.",
    "list_issues": "List issues in a GitHub repository with filtering options.",
    "send_message": "Send a message to a Slack channel, or reply in a thread.",
    "search_messages": "Search messages across channels; files are not searched.",
    "query": "Run a read-only SQL query against the connected PostgreSQL database.",
    "getWeather": "Current weather and the forecast for a city. Погода и прогноз. 天気予報",
    "createCalendarEvent": "Create an event in a calendar, with attendees and a reminder.",
}
QUESTIONS = [
    "read file",
    "create a new issue on github",
    "files",
    "прогноз погоды",
    "天気",
    "calendar event",
    "sql",
]


@pytest.fixture
async def both(indexes: Indexes) -> tuple[Index, Index]:
    """Yield the engine's index and the double's, with the same points."""
    embedder = HashEmbedder()
    items = [Item(name, ItemKind.TOOL, "server", name, text) for name, text in CATALOG.items()]
    vectors = await embed_items(embedder, items)
    points = [Point(index + 1, 1, vectors[index], item_terms(item), {}) for index, item in enumerate(items)]
    opened = [await _filled(kind, IndexCard(embedder.model), points) for kind in (indexes, MemoryIndexes())]
    return opened[0], opened[1]


async def _filled(kind: Indexes, card: IndexCard, points: list[Point]) -> Index:
    await kind.create(card)
    index = await kind.open(card)
    await index.put(points)
    return index


def scores(arm: object) -> dict[int, float]:
    assert isinstance(arm, list)
    return {item.id: item.score for item in arm if isinstance(item, Candidate)}


@pytest.mark.requirement("DOC-003")
@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_double_scores_as_the_engine_does(both: tuple[Index, Index], question: str) -> None:
    ask = IndexQuery(vector=await HashEmbedder().embed_query(question), terms=query_terms(question))
    engine, double = [await index.search(ask) for index in both]
    assert scores(engine.words) == pytest.approx(scores(double.words), abs=1e-3)
    assert scores(engine.dense) == pytest.approx(scores(double.dense), abs=1e-3)
    for term in ask.terms or ():
        assert engine.idf(term) == pytest.approx(double.idf(term))
    assert scores(engine.words)
    assert len(scores(engine.dense)) == len(CATALOG)
