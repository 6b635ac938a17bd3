"""Weights fitted to datasets: useful features get a weight, and a held-out dataset has no influence."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.index import LocalIndex, analyse
from toolscript.gateway.search import LocalSearch
from toolscript.testing import HashEmbedder
from toolscript_eval.dataset import DatasetQuery
from toolscript_eval.fitting import FITTED, Case, CaseSets, fit, hold_out

pytestmark = pytest.mark.slow

VERBS = ("create", "delete", "list", "update")
NOUNS = ("invoice", "ticket", "server", "calendar", "invitation", "recipe", "parcel", "garden")
ITEMS = [
    Item(f"{verb}_{noun}", ItemKind.TOOL, "shop", f"{verb}_{noun}", f"Works on the {noun} of a customer")
    for verb in VERBS
    for noun in NOUNS
]
# Synonyms of the verbs in the names: only the kind of action distinguishes the tools of a noun.
SYNONYMS = {"create": "add", "delete": "remove", "list": "show", "update": "modify"}
ACTIONS_DECIDE = {f"{SYNONYMS[verb]} the {noun}": f"{verb}_{noun}" for verb in VERBS for noun in NOUNS}
ACTIONS_MISLEAD = {
    f"{SYNONYMS[verb]} the {noun}": f"{VERBS[number - 1]}_{noun}"
    for number, verb in enumerate(VERBS)
    for noun in NOUNS
}


async def cases_of(relevant: dict[str, str]) -> Sequence[Case]:
    embedder = HashEmbedder()
    search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.index = LocalIndex(ITEMS, [analyse(item) for item in ITEMS], await embed_items(embedder, ITEMS))
    keys = {row: item.key for row, item in enumerate(ITEMS)}
    cases = []
    for text, key in relevant.items():
        search.embedder = embedder
        request, fused, features = await search.fuse_scores(text, DEFAULT_WEIGHTS)
        search.embedder = None
        _, sparse_fused, sparse_features = await search.fuse_scores(text, DEFAULT_WEIGHTS)
        query = DatasetQuery(text, text, {key: 1} if key else {})
        cases.append(Case(query, request, fused, sparse_fused, features, sparse_features, keys))
    return cases


async def sets() -> CaseSets:
    return {"clear": await cases_of(ACTIONS_DECIDE), "misled": await cases_of(ACTIONS_MISLEAD)}


def weights(weights: RankingWeights) -> dict[str, float]:
    return {part: getattr(weights, part) for part in FITTED}


async def test_a_useful_feature_gets_a_weight_and_a_misleading_one_none() -> None:
    cases = await sets()
    clear, misled = fit({"clear": cases["clear"]}), fit({"misled": cases["misled"]})
    assert clear.action > 0.1
    assert misled.action == 0.0
    assert all(value >= 0 for fitted in (clear, misled) for value in weights(fitted).values())
    assert 0.01 <= clear.calibration.good_match_threshold <= 0.6


async def test_a_held_out_dataset_does_not_influence_its_own_weights() -> None:
    cases = await sets()
    tried = {held_out.set: held_out for held_out in hold_out(cases, {"clear": "a", "misled": "b"})}
    assert tried["misled"].weights == fit({"clear": cases["clear"]})
    assert tried["clear"].weights == fit({"misled": cases["misled"]})
    assert tried["clear"].ndcg < tried["clear"].by_default


async def test_sets_of_one_group_are_held_out_together() -> None:
    cases = await sets()
    more = {**cases, "clear again": cases["clear"]}
    tried = {
        held_out.set: held_out for held_out in hold_out(more, {"clear": "a", "clear again": "a", "misled": "b"})
    }
    assert tried["clear"].weights == tried["clear again"].weights == fit({"misled": cases["misled"]})


async def test_a_fitted_ranking_is_better_than_one_without_its_part() -> None:
    cases = (await sets())["clear"]
    fitted = fit({"clear": cases})
    with_it, without = (
        sum(case.ndcg(weights) for case in cases) for weights in (fitted, replace(fitted, action=0.0))
    )
    assert with_it > without


async def test_confidence_is_higher_where_the_first_is_right() -> None:
    cases = await cases_of({**ACTIONS_DECIDE, "xqzv blorp": "", "weather on the moon": ""})
    weights = fit({"clear": cases})
    rankings = [(case, case.ranking(weights)) for case in cases]
    right = [float(ranking.confidence[0]) for case, ranking in rankings if case.is_right(ranking)]
    wrong = [float(ranking.confidence[0]) for case, ranking in rankings if not case.is_right(ranking)]
    assert sum(right) / len(right) > sum(wrong) / len(wrong)


async def test_nothing_to_fit_to_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="nothing to fit"):
        fit({"none": await cases_of({"xqzv blorp": ""})})
