"""`python -m benchmarks embedders`: sparse retrieval alone, the built-in model and another, in the same ranking.

Each has weights and a calibration of its own, fitted without the dataset that it is measured on.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.embedding.static_table import BUILTIN
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.request import MAX_TEXTS
from toolscript.core.retrieval.weights import RankingWeights
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.settings import NO_MODEL, load_gateway_settings
from toolscript_eval.dataset import Dataset, read_dataset
from toolscript_eval.fitting import hold_out
from toolscript_eval.gateway import GatewayEngine, PreparedItems, cases_of, gateway_search, open_disk_cached
from toolscript_eval.judging import evenly_spread
from toolscript_eval.metrics import DEPTH, ndcg

Numbers = NDArray[np.float64]
Tables = dict[str, list[dict[str, object]]]

RESAMPLES = 10_000

# Runs in a process of its own, which has imported what a gateway without a model imports.
COST = """
import asyncio, json, sys, time
from pathlib import Path
import toolscript.gateway.indexing, toolscript.gateway.runtime
from toolscript.gateway.settings import load_gateway_settings

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

memory, cpu = resident(), time.process_time()
embedder = toolscript.gateway.runtime.load_embedder(load_gateway_settings({"search_model": sys.argv[1]}))
cpu = time.process_time() - cpu

async def run():
    spent = []
    for number in range(500):
        started = time.perf_counter()
        await embedder.embed_query(f"Can you show me the weather forecast for town number {number} tomorrow?")
        spent.append((time.perf_counter() - started) * 1000)
    return sorted(spent)

spent = asyncio.run(run())
print(json.dumps({"load CPU ms": round(cpu * 1000), "memory MB": round(resident() - memory, 1),
    "query p50 ms": round(spent[250], 3), "p95 ms": round(spent[475], 3)}))
"""


@dataclass(frozen=True)
class Answers:
    """One model on one dataset: nDCG of each answerable query, and the verdict of every query."""

    ndcg: Numbers
    refused: Numbers
    answered: Numbers


def bench_embedders(
    folders: Sequence[Path], *, model: str, count: int | None, fitted_on: int, seed: int, on_progress: OnProgress
) -> Tables:
    """`count`: queries to measure per dataset; `fitted_on`: queries of each other dataset to fit weights to."""
    if len(folders) < 2:
        raise InvalidRequest("weights are fitted without the measured dataset", hint="give two datasets or more")
    datasets = [read_dataset(folder) for folder in folders]
    names = (NO_MODEL, BUILTIN, model)
    measured = {
        name: asyncio.run(_measure(datasets, name, count, fitted_on, on_progress)) for name in dict.fromkeys(names)
    }
    words, builtin, other = (measured[name] for name in names)
    rows = [
        _quality(dataset.name, words[dataset.name], builtin[dataset.name], other[dataset.name], seed)
        for dataset in datasets
    ]
    verdicts = [{"set": dataset.name, **_verdicts(dataset.name, measured)} for dataset in datasets]
    return {"nDCG@10": [*rows, _mean(rows)], "verdict": verdicts, "cost": [_cost(name) for name in names[1:]]}


async def _measure(
    datasets: Sequence[Dataset], name: str, count: int | None, fitted_on: int, on_progress: OnProgress
) -> dict[str, Answers]:
    settings = load_gateway_settings({"search_model": name})
    async with nullcontext() if name == NO_MODEL else open_disk_cached(settings, on_progress) as opened:
        embedder = opened and CachedEmbedder(opened, size=MAX_TEXTS * sum(len(each.queries) for each in datasets))
        samples = [evenly_spread(dataset, fitted_on) for dataset in datasets]
        cases = {sample.name: await cases_of(sample, embedder, on_progress) for sample in samples}
        fitted = {tried.set: tried.weights for tried in hold_out(cases, {name: name for name in cases})}
        return {
            dataset.name: await _answers(
                evenly_spread(dataset, count), embedder, fitted[dataset.name], on_progress
            )
            for dataset in datasets
        }


async def _answers(
    dataset: Dataset, embedder: Embedder | None, weights: RankingWeights, on_progress: OnProgress
) -> Answers:
    engine = GatewayEngine(gateway_search(weights), embedder, PreparedItems(embedder))
    await engine.load(dataset.items)
    scores, refused, answered = [], [], []
    for done, query in enumerate(dataset.queries, 1):
        answer = await engine.answer(query.text)
        if query.answerable:
            scores.append(ndcg(answer.keys[:DEPTH], query.relevant))
            refused.append(float(not answer.good_match))
        else:
            answered.append(float(bool(answer.good_match)))
        on_progress(Progress(f"ask {dataset.name}", done, len(dataset.queries)))
    return Answers(np.array(scores), np.array(refused), np.array(answered))


def _quality(name: str, words: Answers, builtin: Answers, other: Answers, seed: int) -> dict[str, object]:
    means = [float(answers.ndcg.mean()) for answers in (words, builtin, other)]
    gained = means[2] - means[0]
    return {
        "set": name,
        "queries": len(words.ndcg),
        "sparse alone": round(means[0], 4),
        "built-in": round(means[1], 4),
        "model": round(means[2], 4),
        "share": round((means[1] - means[0]) / gained, 3) if gained > 0 else "",
        "built-in - sparse": _interval(builtin.ndcg - words.ndcg, seed),
        "built-in - model": _interval(builtin.ndcg - other.ndcg, seed),
    }


def _interval(differences: Numbers, seed: int) -> str:
    """Return the mean with its 95 % bootstrap interval, over queries that both answered."""
    rng = np.random.default_rng(seed)
    picks = (rng.integers(0, len(differences), len(differences)) for _ in range(RESAMPLES))
    means = [float(differences[rows].mean()) for rows in picks]
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{differences.mean():+.4f} ({low:+.4f} to {high:+.4f})"


def _mean(rows: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the means over datasets: of the measures, and of the shares."""
    columns = ("sparse alone", "built-in", "model", "share")
    means = {
        column: np.mean([value for row in rows if isinstance(value := row[column], float)]) for column in columns
    }
    of_means = (means["built-in"] - means["sparse alone"]) / (means["model"] - means["sparse alone"])
    return {
        "set": "mean",
        **{column: round(float(value), 4) for column, value in means.items()},
        "built-in - sparse": f"share of the means {of_means:.3f}",
    }


def _verdicts(dataset: str, measured: Mapping[str, Mapping[str, Answers]]) -> dict[str, object]:
    """Return the shares of answerable queries refused, and of unanswerable ones answered, by model."""
    row: dict[str, object] = {}
    for title, part in (("false refusals", "refused"), ("false answers", "answered")):
        for name, answers in measured.items():
            values: Numbers = getattr(answers[dataset], part)
            row[f"{title}, {Path(name).name}"] = round(float(values.mean()), 4) if len(values) else ""
    return row


def _cost(model: str) -> dict[str, object]:
    """Measure loading, memory and the time of a query, beyond a gateway that has no model."""
    done = subprocess.run([sys.executable, "-c", COST, model], capture_output=True, text=True, check=True)
    return {"model": Path(model).name, **json.loads(done.stdout)}
