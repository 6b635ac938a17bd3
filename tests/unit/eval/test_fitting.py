"""Weights fitted to judged sets: what tells right from wrong gets its weight, and a set left out has no say."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, RankingWeights
from toolscript.eval.dataset import DatasetQuery
from toolscript.eval.fitting import FITTED, Case, CaseSets, fit, hold_out
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.index import LocalIndex, analyse
from toolscript.gateway.search import LocalSearch
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.slow

VERBS = ("create", "delete", "list", "update")
NOUNS = ("invoice", "ticket", "server", "calendar", "invitation", "recipe", "parcel", "garden")
ITEMS = [
    Item(f"{verb}_{noun}", ItemKind.TOOL, "shop", f"{verb}_{noun}", f"Works on the {noun} of a customer")
    for verb in VERBS
    for noun in NOUNS
]
# Said otherwise than the names have it: only the kind of action can tell the tools of a noun apart.
SAID = {"create": "add", "delete": "remove", "list": "show", "update": "modify"}
ACTIONS_DECIDE = {f"{SAID[verb]} the {noun}": f"{verb}_{noun}" for verb in VERBS for noun in NOUNS}
ACTIONS_MISLEAD = {
    f"{SAID[verb]} the {noun}": f"{VERBS[at - 1]}_{noun}" for at, verb in enumerate(VERBS) for noun in NOUNS
}


async def cases_of(judged: dict[str, str]) -> Sequence[Case]:
    embedder = HashEmbedder()
    search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.index = LocalIndex(ITEMS, [analyse(item) for item in ITEMS], await embed_items(embedder, ITEMS))
    keys = {row: item.key for row, item in enumerate(ITEMS)}
    cases = []
    for text, key in judged.items():
        search.embedder = embedder
        request, look, features = await search.fuse_scores(text, DEFAULT_WEIGHTS)
        search.embedder = None
        _, worded, worded_traits = await search.fuse_scores(text, DEFAULT_WEIGHTS)
        query = DatasetQuery(text, text, {key: 1} if key else {})
        cases.append(Case(query, request, look, worded, features, worded_traits, keys))
    return cases


async def sets() -> CaseSets:
    return {"told": await cases_of(ACTIONS_DECIDE), "misled": await cases_of(ACTIONS_MISLEAD)}


def weights(weights: RankingWeights) -> dict[str, float]:
    return {part: getattr(weights, part) for part in FITTED}


async def test_what_tells_right_from_wrong_gets_a_weight_and_what_misleads_none() -> None:
    cases = await sets()
    told, misled = fit({"told": cases["told"]}), fit({"misled": cases["misled"]})
    assert told.action > 0.1
    assert misled.action == 0.0
    assert all(value >= 0 for one in (told, misled) for value in weights(one).values())
    assert 0.01 <= told.calibration.good_match <= 0.6


async def test_a_set_that_is_held_out_has_no_say_in_its_own_recipe() -> None:
    cases = await sets()
    tried = {one.set: one for one in hold_out(cases, {"told": "a", "misled": "b"})}
    assert tried["misled"].weights == fit({"told": cases["told"]})
    assert tried["told"].weights == fit({"misled": cases["misled"]})
    assert tried["told"].ndcg < tried["told"].by_default


async def test_sets_of_one_group_are_held_out_together() -> None:
    cases = await sets()
    more = {**cases, "told again": cases["told"]}
    tried = {one.set: one for one in hold_out(more, {"told": "a", "told again": "a", "misled": "b"})}
    assert tried["told"].weights == tried["told again"].weights == fit({"misled": cases["misled"]})


async def test_a_fitted_ranking_is_better_than_one_without_its_part() -> None:
    cases = (await sets())["told"]
    fitted = fit({"told": cases})
    with_it, without = (
        sum(case.ndcg(weights) for case in cases) for weights in (fitted, replace(fitted, action=0.0))
    )
    assert with_it > without


async def test_confidence_is_higher_where_the_first_is_right() -> None:
    cases = await cases_of({**ACTIONS_DECIDE, "xqzv blorp": "", "weather on the moon": ""})
    weights = fit({"told": cases})
    rankings = [(case, case.ranking(weights)) for case in cases]
    right = [float(one.confidence[0]) for case, one in rankings if case.is_right(one)]
    wrong = [float(one.confidence[0]) for case, one in rankings if not case.is_right(one)]
    assert sum(right) / len(right) > sum(wrong) / len(wrong)


async def test_nothing_to_fit_to_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="nothing to fit"):
        fit({"none": await cases_of({"xqzv blorp": ""})})
