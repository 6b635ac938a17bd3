"""eval fit: weights of the ranking from judged sets, each set judged by weights that were fitted without it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.judged_sets import read_judged_set
from toolscript.errors import InvalidRequest
from toolscript.evaluation.fitting import Case, HeldOut, fit, hold_out
from toolscript.evaluation.judging import evenly_spread
from toolscript.gateway.evaluating import GatewayEngine, PreparedItems, gateway_search, open_remembering
from toolscript.model.judged import EvalResult, JudgedSet
from toolscript.model.progress import OnProgress, Progress
from toolscript.ports import Embedder
from toolscript.search.ranking import DEFAULT_RECIPE, Recipe
from toolscript.search.ranking.recipe import recipe_to_json
from toolscript.settings.gateway import load_gateway_settings

WITH = ":"


def fit_recipe(
    datasets: Sequence[str],
    *,
    model: str | None,
    count: int | None,
    held_out: Path | None,
    on_progress: OnProgress,
) -> EvalResult:
    """`datasets` are folders, or `FOLDER:DISTRACTORS`."""

    async def run() -> EvalResult:
        settings = load_gateway_settings({"search_model": model})
        sets = [evenly_spread(_read(one), count) for one in datasets]
        if len({_title(one) for one in sets}) < len(sets):
            raise InvalidRequest("two sets have the same name", hint="give their folders names of their own")
        async with open_remembering(settings, on_progress) as embedder:
            cases = {_title(one): await _cases(one, embedder, on_progress) for one in sets}
        groups = {_title(one): one.name for one in sets}
        tried = hold_out(cases, groups) if len(set(groups.values())) > 1 else []
        fitted = fit(cases)
        if held_out is not None:
            _write(held_out, tried, groups)
        return EvalResult(recipe_to_json(fitted), _text(fitted, tried))

    return asyncio.run(run())


def _read(dataset: str) -> JudgedSet:
    folder, _, distractors = dataset.partition(WITH)
    return read_judged_set(Path(folder), distractors=Path(distractors) if distractors else None)


def _title(judged: JudgedSet) -> str:
    return f"{judged.name} + {judged.distractors}" if judged.distractors else judged.name


async def _cases(judged: JudgedSet, embedder: Embedder, on_progress: OnProgress) -> list[Case]:
    search = gateway_search(DEFAULT_RECIPE)
    by_words = gateway_search(DEFAULT_RECIPE)
    await GatewayEngine(search, CachedEmbedder(embedder, size=16), PreparedItems(embedder)).load(judged.items)
    by_words.index = search.index
    keys = {row: item.key for row, item in enumerate(judged.items)}
    cases = []
    for query in judged.queries:
        request, look, traits = await search.first_look(query.text, DEFAULT_RECIPE)
        _, worded, worded_traits = await by_words.first_look(query.text, DEFAULT_RECIPE)
        cases.append(Case(query, request, look, worded, traits, worded_traits, keys))
        on_progress(Progress(f"look at {_title(judged)}", len(cases), len(judged.queries)))
    return cases


def _write(folder: Path, tried: Sequence[HeldOut], groups: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in tried:
        data = {**recipe_to_json(one.recipe), "held_out": groups[one.set]}
        (folder / f"{groups[one.set]}.json").write_text(json.dumps(data, indent=2) + "\n", "utf-8")


def _text(fitted: Recipe, tried: Sequence[HeldOut]) -> str:
    lines = [f"{'set':34} {'held out':>9} {'as it is':>9}   nDCG@10 of the ranking alone"] if tried else []
    lines += [f"{one.set:34} {one.ndcg:9.4f} {one.by_default:9.4f}" for one in tried]
    return "\n".join([*lines, "", json.dumps(recipe_to_json(fitted), indent=2)])
