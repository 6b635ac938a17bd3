"""Asks an engine every query of a dataset of tools or documents, and measures its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.eval import metrics
from toolscript.eval.baselines import Ranker
from toolscript.eval.dataset import Dataset, DatasetQuery, EvalReport, Given, SystemReport, SystemRole
from toolscript.eval.metrics import DEPTH, Answered
from toolscript.eval.report import paired

FOLDS = 5

OURS = "our ranking"
# What is sent with each query, the way that is chosen where nobody chooses first.
WAYS: Mapping[str, Mapping[str, str]] = {
    OURS: {"search_type": "hybrid", "fusion": "best"},
    "semantic": {"search_type": "semantic"},
    "keyword": {"search_type": "keyword"},
    "hybrid rrf": {"search_type": "hybrid", "fusion": "rrf"},
    "hybrid zscore": {"search_type": "hybrid", "fusion": "zscore"},
}
AT_ONCE = 200


class Engine(Protocol):
    """Something that can be asked. What is loaded is all that it knows."""

    @property
    def name(self) -> str: ...
    async def load(self, items: Sequence[Item]) -> None: ...
    async def answer(self, query: str) -> Given: ...


def evenly_spread(dataset: Dataset, count: int | None) -> Dataset:
    """So many of its queries, from the first to the last."""
    total = len(dataset.queries)
    if count is None or count >= total:
        return dataset
    return replace(dataset, queries=[dataset.queries[index * total // count] for index in range(count)])


async def judge(
    engine: Engine,
    dataset: Dataset,
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
    if not any(query.answerable for query in dataset.queries):
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    await engine.load(dataset.items)
    await engine.answer(dataset.queries[0].text)
    answered = await _ask(engine, dataset.queries, Progress("ask", 0, len(dataset.queries)), on_progress)
    plain = _plain_reports(baselines or {}, dataset, seed, on_progress)
    parts = [await _ablated_report(name, one, dataset, seed, on_progress) for name, one in (ablated or {}).items()]
    gone = await _ask_without_gold(engine, dataset, seed, on_progress) if without_gold else []
    return EvalReport(
        dataset=dataset.name,
        distractors=dataset.distractors,
        engine=engine.name,
        model=model,
        items=len(dataset.items),
        queries=len(dataset.queries),
        unanswerable=len(metrics.unanswerable(answered)),
        systems=(_engine_report(engine.name, answered, gone, seed), *plain, *parts),
        calibration=metrics.calibration_of(answered),
        curve=metrics.curve_of(answered, gone),
        seed=seed,
    )


async def _ask(
    engine: Engine, queries: Sequence[DatasetQuery], begun: Progress, on_progress: OnProgress
) -> list[Answered]:
    answered = []
    for query in queries:
        answered.append(Answered(query, await engine.answer(query.text)))
        on_progress(replace(begun, done=begun.done + len(answered)))
    return answered


async def _ask_without_gold(
    engine: Engine, dataset: Dataset, seed: int, on_progress: OnProgress
) -> list[Answered]:
    """In folds: a catalog of its own for each query would take as many loads as there are queries."""
    queries = [query for query in dataset.queries if query.answerable]
    shuffled = np.random.default_rng(seed).permutation(len(queries))
    found: dict[str, Answered] = {}
    for fold in np.array_split(shuffled, min(FOLDS, len(queries))):
        asked = [queries[at] for at in fold]
        gold = {key for query in asked for key in query.relevant}
        await engine.load([item for item in dataset.items if item.key not in gold])
        begun = Progress("ask without the right items", len(found), len(queries))
        found |= {answered.query.id: answered for answered in await _ask(engine, asked, begun, on_progress)}
    return [found[query.id] for query in queries]


def _engine_report(name: str, answered: Sequence[Answered], gone: Sequence[Answered], seed: int) -> SystemReport:
    measures = (
        metrics.ranking_measures(answered, seed)
        | metrics.confidence_measures(answered, seed)
        | (metrics.without_gold_measures(metrics.answerable(answered), gone, seed) if gone else {})
        | metrics.routing_measures(answered, seed)
        | metrics.cost_measures(answered, seed)
    )
    return SystemReport(name, measures, metrics.ndcg_by_query(answered))


def _plain_reports(
    baselines: Mapping[str, Ranker], dataset: Dataset, seed: int, on_progress: OnProgress
) -> list[SystemReport]:
    """Query by query: what the baselines share is worked out once for each."""
    queries = [query for query in dataset.queries if query.answerable] if baselines else []
    answered: dict[str, list[Answered]] = {name: [] for name in baselines}
    for done, query in enumerate(queries, 1):
        for name, rank in baselines.items():
            answered[name].append(Answered(query, Given(tuple(rank(query.text, DEPTH)))))
        on_progress(Progress("baselines", done, len(queries)))
    return [
        SystemReport(
            name, metrics.ranking_measures(answers, seed), metrics.ndcg_by_query(answers), SystemRole.BASELINE
        )
        for name, answers in answered.items()
    ]


async def _ablated_report(
    part: str, engine: Engine, dataset: Dataset, seed: int, on_progress: OnProgress
) -> SystemReport:
    """Its times say little: it may be handed vectors of queries that others have embedded."""
    await engine.load(dataset.items)
    begun = Progress(f"ask without {part}", 0, len(dataset.queries))
    answered = await _ask(engine, dataset.queries, begun, on_progress)
    measures = metrics.ranking_measures(answered, seed) | metrics.confidence_measures(answered, seed)
    return SystemReport(f"without {part}", measures, metrics.ndcg_by_query(answered), SystemRole.ABLATED)


class DocumentApi(Protocol):
    """Documents of one tenant."""

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None: ...
    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> Sequence[str]:
        """Ids, best first."""


async def judge_documents(
    api: DocumentApi, dataset: Dataset, *, model: str, seed: int = 0, on_progress: OnProgress = silent
) -> EvalReport:
    """Query by query in every way, so that all of them see the same documents at the same time."""
    queries = [query for query in dataset.queries if query.answerable]
    if not queries:
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    await _put(api, dataset.items, on_progress)
    answered: dict[str, list[Answered]] = {name: [] for name in WAYS}
    for done, query in enumerate(queries, 1):
        for name, way in WAYS.items():
            found = await api.search(query.text, DEPTH, way)
            answered[name].append(Answered(query, Given(tuple(found))))
        on_progress(Progress("ask", done, len(queries)))
    return EvalReport(
        dataset=dataset.name,
        distractors=dataset.distractors,
        engine="documents",
        model=model,
        items=len(dataset.items),
        queries=len(queries),
        unanswerable=0,
        systems=tuple(_report(name, answers, seed) for name, answers in answered.items()),
        seed=seed,
    )


def differences_text(report: EvalReport) -> str:
    """Our ranking beside each of the others, query by query."""
    ours, *others = report.systems
    lines = [f"{ours.system + ' less':28}nDCG@10, query by query"]
    for other in others:
        difference = paired(other, ours, report.seed)
        if difference is not None:
            interval = f"({difference.low:+.4f} to {difference.high:+.4f})"
            lines.append(f"{other.system:28}{difference.value:+.4f}  {interval}")
    return "\n".join(lines)


async def _put(api: DocumentApi, items: Sequence[Item], on_progress: OnProgress) -> None:
    for index in range(0, len(items), AT_ONCE):
        await api.put(
            [
                {"id": item.key, "title": item.name, "text": item.description}
                for item in items[index : index + AT_ONCE]
            ]
        )
        on_progress(Progress("put", min(index + AT_ONCE, len(items)), len(items)))


def _report(name: str, answered: Sequence[Answered], seed: int) -> SystemReport:
    role = SystemRole.ENGINE if name == OURS else SystemRole.BASELINE
    return SystemReport(name, metrics.ranking_measures(answered, seed), metrics.ndcg_by_query(answered), role)
