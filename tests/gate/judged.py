"""Public judged sets, when they lie beside the checkout: tools, queries, and which tool answers which query."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolscript.adapters.jsonl_items import read_items
from toolscript.model.items import Item

DATA = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Judged:
    items: Sequence[Item]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def judged(name: str) -> Judged:
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip("the judged sets are not beside this checkout")
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    texts = {str(one["id"]): str(one["text"]) for one in map(json.loads, lines)}
    relevant: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, tool, grade = line.split("\t")
        if query in texts and grade.isdigit() and int(grade):
            relevant[query][tool] = int(grade)
    items = [item for item in read_items(folder / "tools.jsonl") if isinstance(item, Item)]
    return Judged(items, texts, dict(relevant))


def ndcg(found: Sequence[str], relevant: dict[str, int]) -> float:
    """At ten, with gains of 2^grade - 1."""
    best = sorted(relevant.values(), reverse=True)
    return _gain([relevant.get(key, 0) for key in found[:10]]) / _gain(best[:10])


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))
