"""Asks an engine every query of a judged set, and says how good its answers are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from toolscript.errors import InvalidRequest
from toolscript.evaluation import measuring
from toolscript.evaluation.baselines import Ranker
from toolscript.evaluation.measuring import Answered
from toolscript.evaluation.metrics import DEPTH
from toolscript.model.items import Item
from toolscript.model.judged import EvalReport, Given, JudgedQuery, JudgedSet, SystemReport, SystemRole
from toolscript.model.progress import OnProgress, Progress, silent

FOLDS = 5


class Engine(Protocol):
    """Something that can be asked. What is loaded is all that it knows."""

    @property
    def name(self) -> str: ...
    async def load(self, items: Sequence[Item]) -> None: ...
    async def answer(self, query: str) -> Given: ...


def evenly_spread(judged: JudgedSet, count: int | None) -> JudgedSet:
    """So many of its queries, from the first to the last."""
    total = len(judged.queries)
    if count is None or count >= total:
        return judged
    return replace(judged, queries=[judged.queries[at * total // count] for at in range(count)])


async def judge(
    engine: Engine,
    judged: JudgedSet,
    *,
    model: str,
    baselines: Mapping[str, Ranker] | None = None,
    ablated: Mapping[str, Engine] | None = None,
    seed: int = 0,
    without_gold: bool = True,
    on_progress: OnProgress = silent,
) -> EvalReport:
    """The engine, the baselines on the same catalog, and the engine with one part off at a time.

    `without_gold` asks all queries that have an answer again, with that answer taken out of the catalog.
    """
    if not any(query.answerable for query in judged.queries):
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    await engine.load(judged.items)
    await engine.answer(judged.queries[0].text)
    answered = await _ask(engine, judged.queries, Progress("ask", 0, len(judged.queries)), on_progress)
    plain = _plain_reports(baselines or {}, judged, seed, on_progress)
    parts = [await _ablated_report(name, one, judged, seed, on_progress) for name, one in (ablated or {}).items()]
    gone = await _ask_without_gold(engine, judged, seed, on_progress) if without_gold else []
    return EvalReport(
        dataset=judged.name,
        distractors=judged.distractors,
        engine=engine.name,
        model=model,
        items=len(judged.items),
        queries=len(judged.queries),
        unanswerable=len(measuring.unanswerable(answered)),
        systems=(_engine_report(engine.name, answered, gone, seed), *plain, *parts),
        calibration=measuring.calibration_of(answered),
        curve=measuring.curve_of(answered, gone),
        seed=seed,
    )


async def _ask(
    engine: Engine, queries: Sequence[JudgedQuery], begun: Progress, on_progress: OnProgress
) -> list[Answered]:
    answered = []
    for query in queries:
        answered.append(Answered(query, await engine.answer(query.text)))
        on_progress(replace(begun, done=begun.done + len(answered)))
    return answered


async def _ask_without_gold(
    engine: Engine, judged: JudgedSet, seed: int, on_progress: OnProgress
) -> list[Answered]:
    """In folds: a catalog of its own for each query would take as many loads as there are queries."""
    queries = [query for query in judged.queries if query.answerable]
    shuffled = np.random.default_rng(seed).permutation(len(queries))
    found: dict[str, Answered] = {}
    for fold in np.array_split(shuffled, min(FOLDS, len(queries))):
        asked = [queries[at] for at in fold]
        gold = {key for query in asked for key in query.relevant}
        await engine.load([item for item in judged.items if item.key not in gold])
        begun = Progress("ask without the right items", len(found), len(queries))
        found |= {one.query.id: one for one in await _ask(engine, asked, begun, on_progress)}
    return [found[query.id] for query in queries]


def _engine_report(name: str, answered: Sequence[Answered], gone: Sequence[Answered], seed: int) -> SystemReport:
    measures = (
        measuring.ranking_measures(answered, seed)
        | measuring.confidence_measures(answered, seed)
        | (measuring.without_gold_measures(measuring.answerable(answered), gone, seed) if gone else {})
        | measuring.routing_measures(answered, seed)
        | measuring.cost_measures(answered, seed)
    )
    return SystemReport(name, measures, measuring.ndcg_by_query(answered))


def _plain_reports(
    baselines: Mapping[str, Ranker], judged: JudgedSet, seed: int, on_progress: OnProgress
) -> list[SystemReport]:
    """Query by query: what the baselines share is worked out once for each."""
    queries = [query for query in judged.queries if query.answerable] if baselines else []
    answered: dict[str, list[Answered]] = {name: [] for name in baselines}
    for done, query in enumerate(queries, 1):
        for name, rank in baselines.items():
            answered[name].append(Answered(query, Given(tuple(rank(query.text, DEPTH)))))
        on_progress(Progress("baselines", done, len(queries)))
    return [
        SystemReport(
            name, measuring.ranking_measures(given, seed), measuring.ndcg_by_query(given), SystemRole.BASELINE
        )
        for name, given in answered.items()
    ]


async def _ablated_report(
    part: str, engine: Engine, judged: JudgedSet, seed: int, on_progress: OnProgress
) -> SystemReport:
    """Its times say little: it may be handed vectors of queries that others have embedded."""
    await engine.load(judged.items)
    begun = Progress(f"ask without {part}", 0, len(judged.queries))
    answered = await _ask(engine, judged.queries, begun, on_progress)
    measures = measuring.ranking_measures(answered, seed) | measuring.confidence_measures(answered, seed)
    return SystemReport(f"without {part}", measures, measuring.ndcg_by_query(answered), SystemRole.ABLATED)
