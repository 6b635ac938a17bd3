"""What a person gets to see at default settings, on requests in ordinary words, with either model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolscript.core.embedding.cache import DiskCachedEmbedder, VectorStore
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.embedding.static_table import FOLDER, StaticEmbedder
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript_eval.dataset import read_dataset
from toolscript_eval.gateway import GatewayEngine, PreparedItems, gateway_search
from toolscript_eval.judging import judge

pytestmark = pytest.mark.requirement("TS-003")

DATA = Path(__file__).parents[3] / "shared" / "data"

LEAST = {
    "ordinary": {"useful@3": 0.85, "trusted@3": 0.82, "ndcg@10": 0.81},
    "desk": {"useful@3": 0.58, "trusted@3": 0.50, "ndcg@10": 0.57},
}
MOST = {
    "ordinary": {"misleading": 0.12, "empty": 0.0, "contradiction": 0.0},
    "desk": {"misleading": 0.19, "empty": 0.0, "contradiction": 0.0},
}
# Of the requests of a kind that no tool answers, the share that may be called a good match.
CALLED_GOOD = {"ordinary": {"unanswerable": 0.10}, "desk": {"unanswerable": 0.08, "near_miss": 0.50}}


@pytest.fixture(scope="module", params=["builtin", "minilm"])
async def embedder(
    request: pytest.FixtureRequest, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Embedder]:
    store = tmp_path_factory.mktemp("vectors")
    if request.param == "builtin":
        table = StaticEmbedder(FOLDER)
        yield DiskCachedEmbedder(table, VectorStore(store, table.model))
        return
    model = LocalEmbedder(model_folder)
    yield DiskCachedEmbedder(model, VectorStore(store, model.model))
    model.close()


@pytest.mark.parametrize("name", LEAST)
async def test_what_is_shown_to_a_person_who_asks_in_ordinary_words(name: str, embedder: Embedder) -> None:
    if not (DATA / name).is_dir():
        pytest.skip("the judged sets are not beside this checkout")
    engine = GatewayEngine(gateway_search(DEFAULT_WEIGHTS), embedder, PreparedItems(embedder))
    judged = await judge(engine, read_dataset(DATA / name), model="", without_gold=False)
    whole = judged.systems[0].measures
    missed = [part for part, least in LEAST[name].items() if whole[part].value < least]
    missed += [part for part, most in MOST[name].items() if whole[part].value > most]
    called = {verdict.kind: verdict.measures["false_answers"].value for verdict in judged.verdicts}
    missed += [kind for kind, most in CALLED_GOOD[name].items() if called[kind] > most]
    assert not missed, ({part: round(measure.value, 3) for part, measure in whole.items()}, called)
