"""Minimum quality of document search, over the HTTP API with the real engine and a real model."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.e2e.commands import run

pytestmark = pytest.mark.requirement("DOC-001", "DOC-007")

GOLDEN = Path(__file__).parents[1] / "golden"
SCIFACT = Path(__file__).parents[3] / "shared" / "data" / "scifact"
# For a catalog of tools, put as documents; and for the relevant documents of a slice of queries, among others.
GOLDEN_FLOOR = 0.78
SLICE, OTHERS, SLICE_FLOOR = 40, 150, 0.85
NOISE = 0.01


def judged(installation: Installation, dataset: Path, tmp_path: Path) -> dict[str, float]:
    mine = {**installation.environment, "TOOLSCRIPT_DATA_DIR": str(tmp_path)}
    output = json.loads(run(mine, "eval", "documents", "--dataset", str(dataset), "--json").stdout)
    return {system["system"]: system["measures"]["ndcg@10"]["value"] for system in output["systems"]}


def test_our_own_set_keeps_its_floor_and_our_ranking_is_the_best_way(
    installation: Installation, tmp_path: Path
) -> None:
    reached = judged(installation, GOLDEN, tmp_path)
    assert reached["our ranking"] >= GOLDEN_FLOOR, reached
    assert reached["our ranking"] >= max(reached.values()) - NOISE, reached


@pytest.mark.nightly
def test_a_slice_of_a_public_set_keeps_its_floor_and_our_ranking_beats_both_retrievers(
    installation: Installation, tmp_path: Path
) -> None:
    if not SCIFACT.is_dir():
        pytest.skip("the judged sets are not beside this checkout")
    reached = judged(installation, slice_of(SCIFACT, tmp_path / "slice"), tmp_path)
    assert reached["our ranking"] >= SLICE_FLOOR, reached
    assert reached["our ranking"] >= max(reached["semantic"], reached["keyword"]), reached
    assert reached["our ranking"] >= max(reached.values()) - NOISE, reached


def slice_of(whole: Path, folder: Path) -> Path:
    """Return every fifth query, its relevant documents, and more documents in file order."""
    queries = (whole / "queries.jsonl").read_text("utf-8").splitlines()[::5][:SLICE]
    ids = {json.loads(line)["id"] for line in queries}
    grades = [line for line in (whole / "qrels.tsv").read_text("utf-8").splitlines() if line.split("\t")[0] in ids]
    gold = {line.split("\t")[1] for line in grades}
    documents = (whole / "docs.jsonl").read_text("utf-8").splitlines()
    answers = [line for line in documents if re.match(r'\{"id": "(\d+)"', line)[1] in gold]  # type: ignore[index]
    folder.mkdir()
    (folder / "queries.jsonl").write_text("\n".join(queries), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(grades), "utf-8")
    (folder / "docs.jsonl").write_text("\n".join(dict.fromkeys([*answers, *documents[:OTHERS]])), "utf-8")
    return folder
