"""The least quality of a gateway's ranking: on public sets, and for the names of all their tools."""

from collections.abc import Sequence

import pytest

from tests.gate.judged import Judged, judged, ndcg
from toolscript.adapters.local_model import LocalEmbedder
from toolscript.model.gateway import LocalQuery
from toolscript.model.item_text import embedded_text
from toolscript.model.items import Item
from toolscript.model.queries import MAX_QUERY
from toolscript.model.tool_ids import tool_id
from toolscript.search.local import LocalIndex, LocalSearch, analyse, default_capabilities

# What z-score fusion of BM25 and the same model reaches (all-MiniLM-L6-v2, half and half, top 100 of each).
FLOORS = {"azure_mcp": 0.945, "etom": 0.901}
# A slice of the queries, evenly spread, keeps this short; a slice is allowed its noise.
SLICE, NOISE = 250, 0.02


def search_over(items: Sequence[Item]) -> LocalSearch:
    search = LocalSearch(default_capabilities(), alpha=0.7)
    search.index = LocalIndex(items, [analyse(item) for item in items]).warm()
    return search


async def mean_ndcg(search: LocalSearch, judged: Judged, queries: Sequence[str]) -> float:
    keys = {id(item): item.key for item in search.index.items}
    total = 0.0
    for query in queries:
        asked = LocalQuery(judged.queries[query][:MAX_QUERY], limit=10, threshold=0.0)
        hits = (await search.search(asked)).hits
        total += ndcg([keys[id(hit.item)] for hit in hits], judged.relevant[query])
    return total / len(queries)


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("name", FLOORS)
async def test_the_ranking_is_not_below_plain_fusion(name: str, model_folder: str) -> None:
    known = judged(name)
    search = search_over(known.items)
    embedder = LocalEmbedder(model_folder)
    vectors = await embedder.embed_passages([embedded_text(item) for item in known.items])
    search.index, search.embedder = search.index.with_vectors(vectors).warm(), embedder
    answerable = sorted(known.relevant)
    queries = answerable[:: max(1, len(answerable) // SLICE)]
    reached = await mean_ndcg(search, known, queries)
    embedder.close()
    assert reached >= FLOORS[name] - NOISE, f"nDCG@10 {reached:.4f} over {len(queries)} queries"


@pytest.mark.requirement("TS-003")
async def test_an_exact_name_is_first_for_every_tool_of_a_large_catalog() -> None:
    items = judged("etom").items
    search = search_over(items)
    wrong = []
    for item in items:
        by_name = (await search.search(LocalQuery(item.name[:MAX_QUERY]))).hits
        by_id = (await search.search(LocalQuery(tool_id(item.server, item.name)[:MAX_QUERY]))).hits
        if not by_name or by_name[0].item.name != item.name or not by_id or by_id[0].item is not item:
            wrong.append(tool_id(item.server, item.name))
    assert wrong == []
