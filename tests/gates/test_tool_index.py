"""`ToolIndex` answers as the gateway does, on public sets and our own, and costs little beside its embedder."""

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.tool_index import IndexingTimes, beyond_embedding, differences, index_of, indexing_times
from toolscript.core.embedding.cache import DiskCachedEmbedder, VectorStore
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.items import Item
from toolscript_eval.dataset import Dataset, read_dataset
from toolscript_eval.judging import evenly_spread

pytestmark = pytest.mark.requirement("AP-002")

GOLDEN = Path(__file__).parents[1] / "golden"
DATA = Path(__file__).parents[3] / "shared" / "data"
SLICE = 40
TOOLS = 1_000
TRIES = 5
MAX_INDEXING_RATIO = 1.2
MAX_BEYOND_MS = 5.0


def public_set(name: str) -> Dataset:
    if not (DATA / name).is_dir():
        pytest.skip("the judged sets are not beside this checkout")
    return read_dataset(DATA / name)


async def assert_equal(dataset: Dataset, model_folder: str, folder: Path) -> None:
    """Give both the same vector for a text: those of a quantized model depend on the other texts of a batch."""
    model = LocalEmbedder(model_folder)
    tools = [item for item in dataset.items if item.server]
    try:
        shared = DiskCachedEmbedder(model, VectorStore(folder, model.model))
        different = await differences(tools, [query.text for query in dataset.queries], shared)
    finally:
        model.close()
    assert different == []


async def test_our_own_set_is_ranked_as_by_the_gateway(model_folder: str, tmp_path: Path) -> None:
    golden = read_dataset(GOLDEN)
    await assert_equal(golden, model_folder, tmp_path)


@pytest.mark.parametrize("name", [pytest.param("azure_mcp", marks=pytest.mark.nightly), "desk"])
async def test_a_slice_of_a_public_set_is_ranked_as_by_the_gateway(
    name: str, model_folder: str, tmp_path: Path
) -> None:
    await assert_equal(evenly_spread(public_set(name), SLICE), model_folder, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["azure_mcp", "desk"])
async def test_every_query_of_a_public_set_is_answered_as_by_the_gateway(
    name: str, model_folder: str, tmp_path: Path
) -> None:
    await assert_equal(public_set(name), model_folder, tmp_path)


@pytest.fixture(scope="module")
def many_tools() -> list[Item]:
    items = [item for name in ("azure_mcp", "desk", "etom") for item in public_set(name).items]
    return list({(item.server, item.name): item for item in items}.values())[:TOOLS]


@pytest.mark.nightly
@pytest.mark.alone
async def test_indexing_costs_little_more_than_embedding(model_folder: str, many_tools: list[Item]) -> None:
    """A busy machine can spoil a run, never improve one: the best try is what the code can do."""
    model = LocalEmbedder(model_folder)
    tried: list[IndexingTimes] = []
    try:
        while len(tried) < TRIES and not any(times.ratio <= MAX_INDEXING_RATIO for times in tried):
            tried.append(await indexing_times(many_tools, model))
    finally:
        model.close()
    assert min(times.ratio for times in tried) <= MAX_INDEXING_RATIO, tried


@pytest.mark.nightly
@pytest.mark.alone
async def test_a_search_costs_little_beyond_its_embedding(
    model_folder: str, many_tools: list[Item], tmp_path: Path
) -> None:
    model = LocalEmbedder(model_folder)
    queries = [query.text for query in evenly_spread(public_set("azure_mcp"), 200).queries]
    tried: list[float] = []
    try:
        index = await index_of(many_tools, DiskCachedEmbedder(model, VectorStore(tmp_path, model.model)))
        while len(tried) < TRIES and not any(p95 <= MAX_BEYOND_MS for p95 in tried):
            tried.append((await asyncio.to_thread(beyond_embedding, index, queries)).p95_ms)
    finally:
        model.close()
    assert min(tried) <= MAX_BEYOND_MS, json.dumps(tried)
