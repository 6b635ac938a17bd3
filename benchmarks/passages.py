"""`python -m benchmarks passages`: CPU time of embedding passages in bulk, against batches by count and none."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from toolscript.core.embedding.embedder import LocalEmbedder, load_model
from toolscript.core.embedding.engine import Device, Engine
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.values import OnProgress, Progress, silent

# Letters of a passage, and the words that it is cut to.
MIN_LETTERS, MAX_LETTERS, WORDS = 252, 515, 59
QUERY_WORDS = (8, 12)
BY_COUNT = 32
WARM_UP = 8

Tables = dict[str, list[dict[str, object]]]
Work = Callable[[], Awaitable[object]]


def read_passages(path: Path, count: int, seed: int) -> list[str]:
    """Cut the `text`s of a file of JSON lines into passages of about equal length, in random order."""
    try:
        texts = [str(json.loads(line)["text"]) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{path} is not a file of JSON lines with a `text`: {error}") from None
    cut = [" ".join(words[start : start + WORDS]) for words in map(str.split, texts) for start in _starts(words)]
    passages = [passage for passage in dict.fromkeys(cut) if MIN_LETTERS <= len(passage) <= MAX_LETTERS]
    if len(passages) < count:
        raise InvalidRequest(f"{path} gives {len(passages)} passages", hint="give more texts, or a lower --count")
    random.Random(seed).shuffle(passages)
    return passages[:count]


def _starts(words: Sequence[str]) -> range:
    return range(0, len(words), WORDS)


def bench_passages(
    texts: Path, *, model: str, count: int, rounds: int, seed: int, on_progress: OnProgress
) -> Tables:
    """Embed the same passages in each way in turn, on one thread. The median round counts."""
    passages = read_passages(texts, count, seed)
    queries = queries_from(passages, seed)
    embedder = LocalEmbedder(model, threads=1)
    engine = load_model(model, 1, Device.AUTO, None, silent).engine
    try:
        engine.embed_encoded(engine.encode(passages[:WARM_UP]))
        ways = ways_of(engine, embedder, passages, queries)
        return asyncio.run(_measure(ways, len(passages), rounds, on_progress))
    finally:
        embedder.close()


def queries_from(passages: Sequence[str], seed: int) -> list[str]:
    """Return as many queries: consecutive words of the passages."""
    rng = random.Random(seed)
    return [" ".join(passage.split()[: rng.randint(*QUERY_WORDS)]) for passage in passages]


async def _measure(ways: Mapping[str, Work], count: int, rounds: int, on_progress: OnProgress) -> Tables:
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, work in ways.items() if number % 2 == 0 else list(ways.items())[::-1]:
            spent[name].append(await _cpu_ms(work) / count)
        on_progress(Progress("embed", number + 1, rounds))
    return {"CPU ms per text": _rows(spent)}


def ways_of(
    engine: Engine, embedder: LocalEmbedder, passages: list[str], queries: list[str]
) -> Mapping[str, Work]:
    async def each(batches: Sequence[Sequence[str]]) -> None:
        for batch in batches:
            engine.embed_encoded(engine.encode(batch))

    async def each_query() -> None:
        for query in queries:
            await embedder.embed_query(query)

    return {
        f"batches of {BY_COUNT} by letters": lambda: each(batches_by_count(passages)),
        "one text a call": lambda: each([[passage] for passage in passages]),
        "embed_texts": lambda: embedder.embed_texts(passages),
        "embed_query, 8 to 12 words": each_query,
    }


def _rows(spent: dict[str, list[float]]) -> list[dict[str, object]]:
    """Return the median of each way; ratios to the first one are of the same round."""
    first = next(iter(spent.values()))
    return [
        {
            "way": name,
            "median": round(median(values), 2),
            "lowest": round(min(values), 2),
            "ratio": round(median(value / before for value, before in zip(values, first, strict=True)), 3),
        }
        for name, values in spent.items()
    ]


async def _cpu_ms(work: Work) -> float:
    started = time.process_time()
    await work()
    return (time.process_time() - started) * 1000


def batches_by_count(texts: Sequence[str]) -> list[list[str]]:
    ordered = sorted(texts, key=len)
    return [ordered[start : start + BY_COUNT] for start in range(0, len(ordered), BY_COUNT)]
