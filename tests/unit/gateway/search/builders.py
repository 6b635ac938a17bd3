"""A few tools, and indexes of them with and without vectors."""

from collections.abc import Sequence

import numpy as np

from toolscript.core.item_text import embedded_views
from toolscript.core.items import Item, ItemKind, tool_id
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.index import LocalIndex, analyse
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch
from toolscript.testing import HashEmbedder


def item(
    server: str, name: str, description: str = "", *, kind: ItemKind = ItemKind.TOOL, **properties: str
) -> Item:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "description": text} for key, text in properties.items()},
    }
    return Item(
        tool_id(server, name), kind, server, name, description, input_schema=schema if properties else None
    )


READ_FILE = item("files", "read_file", "Read the contents of a file", path="Where the file is")
WRITE_FILE = item("files", "write_file", "Write text into a file", path="Where the file is", text="What to write")
SEND_MAIL = item("mail", "send_mail", "Send an electronic letter to somebody", recipient="Who gets it")
FORECAST = item("weather", "get_forecast", "Tomorrow's weather for a city", city="Name of the city")
BASH = item("shell", "bash", "Run something and return what it prints")
GIT_COMMIT = item("git", "git_commit", "Records changes to the repository with a message")
CALENDAR = item("agenda", "create_event", "Put an appointment into the calendar", when="Start of it")
SUMMARY = item("files", "summarise_file", "Sum a file up in a few sentences", kind=ItemKind.PROMPT)
LOG = item("files", "file_log", "What was done to files", kind=ItemKind.RESOURCE)

ITEMS = (READ_FILE, WRITE_FILE, SEND_MAIL, FORECAST, BASH, CALENDAR, SUMMARY, LOG)


def index_of(items: Sequence[Item] = ITEMS, vectors: Matrix | None = None) -> LocalIndex:
    return LocalIndex(items, [analyse(item_) for item_ in items], vectors)


def vectors_of(items: Sequence[Item]) -> Matrix:
    """Embed items as the gateway does: the weighted sum of their views."""
    embed = HashEmbedder()._embed
    mixed = [sum(share * embed(text) for share, text in embedded_views(item_)) for item_ in items]
    return np.stack([np.asarray(vector / np.linalg.norm(vector), dtype=np.float32) for vector in mixed])


def embedded_index(items: Sequence[Item] = ITEMS) -> LocalIndex:
    return index_of(items, vectors_of(items))


def search_over(
    items: Sequence[Item] = ITEMS, *, model: bool = True, weights: RankingWeights = DEFAULT_WEIGHTS
) -> LocalSearch:
    search = LocalSearch(default_capabilities(), weights)
    search.index = embedded_index(items) if model else index_of(items)
    search.embedder = HashEmbedder() if model else None
    return search


async def search_all(
    text: str,
    items: Sequence[Item] = ITEMS,
    *,
    model: bool = True,
    threshold: float = 0.0,
    weights: RankingWeights = DEFAULT_WEIGHTS,
) -> LocalAnswer:
    """Search all kinds, without a limit."""
    query = LocalQuery(text, limit=100, threshold=threshold, kind=None)
    return await search_over(items, model=model, weights=weights).search(query)


def names(answer: LocalAnswer) -> list[str]:
    return [hit.item.name for hit in answer.hits]


def direction(*parts: float) -> Vector:
    """Return a unit vector of these components."""
    vector = np.array(parts, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
