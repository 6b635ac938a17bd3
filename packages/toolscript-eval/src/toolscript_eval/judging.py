"""Runs every query of a dataset of tools or documents on an engine, and measures its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item
from toolscript.core.values import OnProgress, Progress, silent
from toolscript_eval import metrics
from toolscript_eval.baselines import Ranker
from toolscript_eval.dataset import (
    Dataset,
    DatasetQuery,
    EngineAnswer,
    EvalReport,
    Slice,
    SystemReport,
    SystemRole,
)
from toolscript_eval.metrics import DEPTH, JudgedAnswer
from toolscript_eval.report import paired
from toolscript_eval.verdict import verdicts_of

FOLDS = 5

OURS = "our ranking"
# Request options by name of the variant; the default comes first.
WAYS: Mapping[str, Mapping[str, str]] = {
    OURS: {"search_type": "hybrid", "fusion": "best"},
    "semantic": {"search_type": "semantic"},
    "keyword": {"search_type": "keyword"},
    "hybrid rrf": {"search_type": "hybrid", "fusion": "rrf"},
    "hybrid zscore": {"search_type": "hybrid", "fusion": "zscore"},
}
AT_ONCE = 200


class Engine(Protocol):
    """A search engine over the loaded items only."""

    @property
    def name(self) -> str: ...
    async def load(self, items: Sequence[Item]) -> None: ...
    async def answer(self, query: str) -> EngineAnswer: ...


def evenly_spread(dataset: Dataset, count: int | None) -> Dataset:
    """Return the dataset with `count` of its queries, evenly spread."""
    total = len(dataset.queries)
    if count is None or count >= total:
        return dataset
    queries = [dataset.queries[index * total // count] for index in range(count)]
    return replace(dataset, queries=queries, sampled_from=dataset.sampled_from or total)


async def judge(
    engine: Engine,
    dataset: Dataset,
    *,
    model: str,
    baselines: Mapping[str, Ranker] | None = None,
    ablated: Mapping[str, Engine] | None = None,
    seed: int = 0,
    without_gold: bool = True,
    by: Sequence[str] = (),
    on_progress: OnProgress = silent,
) -> EvalReport:
    """Measure the engine, the baselines on the same catalog, and the engine with one part off at a time.

    `without_gold` repeats answerable queries without their relevant items; `by` names labels to measure apart.
    """
    _require_judgeable(dataset, by)
    await engine.load(dataset.items)
    await engine.answer(dataset.queries[0].text)
    answered = await _run_queries(engine, dataset.queries, Progress("ask", 0, len(dataset.queries)), on_progress)
    plain = ranker_reports(baselines or {}, dataset, seed=seed, on_progress=on_progress)
    parts = [await _ablated_report(*part, dataset, seed, on_progress) for part in (ablated or {}).items()]
    gone = await _run_without_gold(engine, dataset, seed, on_progress) if without_gold else []
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
        slices=tuple(part for name in by for part in _slices(answered, name, seed)),
        verdicts=verdicts_of(answered, seed),
        sampled_from=dataset.sampled_from,
    )


def _require_judgeable(dataset: Dataset, names: Sequence[str]) -> None:
    """Raise before anything is measured if no query has an answer, or none has one of these labels."""
    if not any(query.answerable for query in dataset.queries):
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    known = {name for query in dataset.queries for name in query.labels}
    for name in names:
        if name not in known:
            fields = ", ".join(sorted(known)) or "none"
            raise InvalidRequest(f"no query has a field {name[:80]!r}", hint=f"fields of the queries: {fields}")


def _slices(answered: Sequence[JudgedAnswer], name: str, seed: int) -> list[Slice]:
    """Return a slice per value of the label, the largest first."""
    by_value: dict[str, list[JudgedAnswer]] = {}
    for judged in answered:
        if name in judged.query.labels:
            by_value.setdefault(judged.query.labels[name], []).append(judged)
    return [
        Slice(name, value, len(part), len(metrics.unanswerable(part)), metrics.slice_measures(part, seed))
        for value, part in sorted(by_value.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ]


async def _run_queries(
    engine: Engine, queries: Sequence[DatasetQuery], progress: Progress, on_progress: OnProgress
) -> list[JudgedAnswer]:
    answers = []
    for query in queries:
        answers.append(JudgedAnswer(query, await engine.answer(query.text)))
        on_progress(replace(progress, done=progress.done + len(answers)))
    return answers


async def _run_without_gold(
    engine: Engine, dataset: Dataset, seed: int, on_progress: OnProgress
) -> list[JudgedAnswer]:
    """Run in folds: a catalog per query would take as many loads as there are queries."""
    queries = [query for query in dataset.queries if query.answerable]
    shuffled = np.random.default_rng(seed).permutation(len(queries))
    answers: dict[str, JudgedAnswer] = {}
    for fold in np.array_split(shuffled, min(FOLDS, len(queries))):
        fold_queries = [queries[index] for index in fold]
        gold = {key for query in fold_queries for key in query.relevant}
        await engine.load([item for item in dataset.items if item.key not in gold])
        progress = Progress("ask without the right items", len(answers), len(queries))
        answers |= {
            answer.query.id: answer for answer in await _run_queries(engine, fold_queries, progress, on_progress)
        }
    return [answers[query.id] for query in queries]


def _engine_report(
    name: str, answered: Sequence[JudgedAnswer], gone: Sequence[JudgedAnswer], seed: int
) -> SystemReport:
    measures = (
        metrics.shown_measures(answered, seed)
        | metrics.ranking_measures(answered, seed)
        | metrics.confidence_measures(answered, seed)
        | (metrics.without_gold_measures(metrics.answerable(answered), gone, seed) if gone else {})
        | metrics.routing_measures(answered, seed)
        | metrics.cost_measures(answered, seed)
    )
    return SystemReport(name, measures, metrics.ndcg_by_query(answered))


def ranker_reports(
    rankers: Mapping[str, Ranker],
    dataset: Dataset,
    *,
    seed: int,
    role: SystemRole = SystemRole.BASELINE,
    notes: Mapping[str, str] | None = None,
    on_progress: OnProgress = silent,
) -> list[SystemReport]:
    """Measure baselines or peers, query by query: what the baselines share is computed once per query."""
    queries = [query for query in dataset.queries if query.answerable] if rankers else []
    answered: dict[str, list[JudgedAnswer]] = {name: [] for name in rankers}
    for done, query in enumerate(queries, 1):
        for name, rank in rankers.items():
            answered[name].append(JudgedAnswer(query, EngineAnswer(tuple(rank(query.text, DEPTH)))))
        on_progress(Progress(f"{role}s", done, len(queries)))
    return [
        SystemReport(
            name,
            metrics.ranking_measures(answers, seed),
            metrics.ndcg_by_query(answers),
            role,
            (notes or {}).get(name, ""),
        )
        for name, answers in answered.items()
    ]


async def _ablated_report(
    part: str, engine: Engine, dataset: Dataset, seed: int, on_progress: OnProgress
) -> SystemReport:
    """Measure an ablated engine without its times: it may reuse cached query vectors."""
    await engine.load(dataset.items)
    progress = Progress(f"ask without {part}", 0, len(dataset.queries))
    answered = await _run_queries(engine, dataset.queries, progress, on_progress)
    measures = metrics.ranking_measures(answered, seed) | metrics.confidence_measures(answered, seed)
    return SystemReport(f"without {part}", measures, metrics.ndcg_by_query(answered), SystemRole.ABLATED)


class DocumentApi(Protocol):
    """Documents of one tenant."""

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None: ...
    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> Sequence[str]:
        """Return ids, best first."""


async def judge_documents(
    api: DocumentApi, dataset: Dataset, *, model: str, seed: int = 0, on_progress: OnProgress = silent
) -> EvalReport:
    """Measure all variants query by query, so that all see the same documents at the same time."""
    queries = [query for query in dataset.queries if query.answerable]
    if not queries:
        raise InvalidRequest("none of these queries has an answer", hint="take more of them: --count")
    await _put(api, dataset.items, on_progress)
    answered: dict[str, list[JudgedAnswer]] = {name: [] for name in WAYS}
    for done, query in enumerate(queries, 1):
        for name, way in WAYS.items():
            ids = await api.search(query.text, DEPTH, way)
            answered[name].append(JudgedAnswer(query, EngineAnswer(tuple(ids))))
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
    """Return our ranking compared with each other variant, query by query."""
    ours, *variants = report.systems
    lines = [f"{ours.system + ' less':28}nDCG@10, query by query"]
    for variant in variants:
        difference = paired(variant, ours, report.seed)
        if difference is not None:
            interval = f"({difference.low:+.4f} to {difference.high:+.4f})"
            lines.append(f"{variant.system:28}{difference.value:+.4f}  {interval}")
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


def _report(name: str, answered: Sequence[JudgedAnswer], seed: int) -> SystemReport:
    role = SystemRole.ENGINE if name == OURS else SystemRole.BASELINE
    return SystemReport(name, metrics.ranking_measures(answered, seed), metrics.ndcg_by_query(answered), role)
