"""`eval documents` and `benchmarks documents`: each in a collection of its own, which is gone afterwards."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run, run_here
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.settings.service import Settings
from toolscript_eval.documents import remove_documents

GOLDEN = Path(__file__).parents[1] / "golden"
PASSAGES = 1_000
FEW = ("--passages", str(PASSAGES), "--tenants", "30", "--count", "2")
TABLES = {
    "collection",
    "against the bare engine",
    "stages of a hybrid search, p50 ms",
    "first search of a tenant against a later one",
    "the same tenants beside all others against alone",
    "recall of dense retrieval",
    "kept",
}


def collections(engines: Settings, prefix: str) -> Sequence[str]:
    from qdrant_client import grpc as wire

    async def listed() -> list[str]:
        async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
            result = await connected.collections.List(wire.ListCollectionsRequest())
        return [collection.name for collection in result.collections]

    return [name for name in asyncio.run(listed()) if name.startswith(prefix)]


def remove(engines: Settings, name: str) -> None:
    async def removed() -> None:
        async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
            await remove_documents(connected, name)

    asyncio.run(removed())


@pytest.mark.requirement("DOC-001", "DOC-006")
def test_a_dataset_is_put_and_searched_over_the_api_in_all_five_ways(
    installation: Installation, engines: Settings, tmp_path: Path
) -> None:
    mine = {**installation.environment, "TOOLSCRIPT_DATA_DIR": str(tmp_path)}
    before = collections(engines, "eval_documents_")
    report = tmp_path / "report.json"
    arguments = ("eval", "documents", "--dataset", str(GOLDEN), "--count", "15", "--out", str(report))
    output = run_here(mine, *arguments).stdout
    ways = ["our ranking", "semantic", "keyword", "hybrid rrf", "hybrid zscore"]
    assert [line.strip() for line in output.splitlines() if "our ranking less" in line]
    systems = json.loads(report.read_text("utf-8"))["systems"]
    assert [item["system"] for item in systems] == ways
    assert all(0.4 < item["measures"]["ndcg@10"]["value"] <= 1 for item in systems)
    assert set(collections(engines, "eval_documents_")) <= set(before)
    again = run_here(mine, *arguments[:-2], "--compare", str(report), "--json")
    assert next(item["measure"] for item in json.loads(again.stdout)["compared"]) == "ndcg@10"


@pytest.mark.nightly
@pytest.mark.requirement("DOC-003")
def test_a_benchmark_of_many_tenants_leaves_nothing_but_the_kept_collection(
    installation: Installation, engines: Settings
) -> None:
    mine = installation.environment
    kept = json.loads(run(mine, "bench", "documents", *FEW, "--keep", "--json").stdout)
    assert set(kept) == TABLES
    name = kept["kept"][0]["kept"]
    assert kept["collection"][-1]["passages"] == PASSAGES
    compared = {(row["tenants"], row["search"]) for row in kept["against the bare engine"]}
    assert {("any tenant", "hybrid"), ("biggest", "keyword, 1 of 2"), ("tiny", "semantic")} <= compared
    assert all(row["recall@10"] > 0.9 for row in kept["recall of dense retrieval"])
    (collection,) = collections(engines, name)
    used = run(mine, "bench", "documents", *FEW, "--use", name)
    assert "against the bare engine" in used.stdout
    assert collections(engines, name) == [collection]
    remove(engines, name)
    refused = run(mine, "bench", "documents", *FEW, "--use", name, code=2)
    assert "there is no kept collection" in refused.stderr
    assert collections(engines, name) == []
