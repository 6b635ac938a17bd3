"""Questions of every kind, the same every time, and answers that can be compared.

The words of the neighbour are those of the others the other way round: what is rare here is common there, so that
whatever counts the words of both gives other answers.
"""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2

from tests.e2e.tenants.asking import EVENTS, LINES
from tests.e2e.tenants.checking import found_in

SYLLABLES = ("ba", "ko", "ri", "mu", "ten", "sol", "va", "pel", "dor", "ni")
WORDS = tuple(f"{first}{second}{third}" for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES[:4])
WEIGHTS = tuple(1 / (rank + 1) for rank in range(len(WORDS)))
# What is another one each time, and says nothing of a document.
PASSING = frozenset({"query_id", "took_ms", "next_cursor"})
OPS: tuple[tuple[str, str, object], ...] = (
    ("n", "eq", 1),
    ("n", "ne", 1),
    ("n", "lt", 40),
    ("n", "lte", 40.5),
    ("price", "gt", 3.3),
    ("when", "gte", "2026-01-10"),
    ("title", "contains", "ba"),
    ("tags", "in", ["tag-1", "tag-2"]),
    ("tags", "nin", ["tag-3"]),
    ("rare", "exists", True),
)

Json = dict[str, Any]


def documents(count: int, seed: int, *, reverse: bool = False) -> Iterator[Json]:
    chance = random.Random(seed)
    weights = WEIGHTS[::-1] if reverse else WEIGHTS
    for number in range(count):
        long = number % 11 == 3
        words = chance.choices(WORDS, weights, k=400 if long else 25)
        yield {
            "id": f"doc-{number}",
            "title": " ".join(chance.choices(WORDS, weights, k=3)),
            "text": " ".join(words) + ".",
            "metadata": {
                "n": number,
                "price": number / 7,
                "when": f"2026-01-{1 + number % 28:02}",
                "tags": ["all", f"tag-{number % 5}"],
                **({"rare": True} if number % 13 == 0 else {}),
            },
        }


def searches(texts: int) -> Iterator[tuple[Json, str]]:
    """Bodies, and the form of the answer."""
    chance = random.Random(11)
    for at in range(texts):
        rare, common = chance.choice(WORDS[100:]), chance.choice(WORDS[:10])
        text = {"query": f"{rare} {common} {chance.choice(WORDS)}"}
        for search_type in ("semantic", "keyword", "hybrid"):
            yield {**text, "search_type": search_type, "top_k": (10, 200, 3, 50)[at]}, ""
        for fusion in ("rrf", "zscore", "best"):
            yield {**text, "fusion": fusion, "top_k": (10, 200, 3, 50)[at]}, ""
        yield {**text, "offset": (1, 5, 40, 120)[at]}, ""
        yield {**text, "metadata_fields": ["n"], "snippet_max_chars": 60}, ""
        yield {**text, "cursor": "*", "top_k": 60}, ""
        yield {**text, "filters": {"must": [{"field": "tags", "op": "in", "value": ["tag-1"]}]}}, ""
        yield text, (LINES, EVENTS)[at % 2]
    for field, op, value in OPS:
        for where in ("must", "should", "must_not")[:texts]:
            yield {"filters": {where: [{"field": field, "op": op, "value": value}]}, "top_k": 20}, ""
    yield {"cursor": "*", "top_k": 150}, ""


async def answers(client: httpx2.AsyncClient, token: str, ids: Sequence[str], texts: int) -> list[str]:
    """To every question, without what is another each time. `texts` are asked for, four at the most."""
    given = []
    for body, accept in searches(texts):
        given += [json.dumps([body, accept, *page]) async for page in _pages(client, token, body, accept)]
    for id_ in ids:
        answer = await client.get(f"/documents/{id_}", headers=_with(token))
        assert answer.status_code == 200, answer.text
        given.append(answer.text)
    return given


async def _pages(client: httpx2.AsyncClient, token: str, body: Json, accept: str) -> Any:
    """One, or all to which cursors lead."""
    cursor: str | None = ""
    while cursor is not None:
        asked = {**body, "cursor": cursor} if cursor else body
        answer = await client.post("/search", json=asked, headers=_with(token, accept))
        assert answer.status_code == 200, answer.text
        hits, end = found_in(accept, answer.text)
        cursor = end["next_cursor"]
        yield hits, {name: value for name, value in end.items() if name not in PASSING}


def _with(token: str, accept: str = "") -> dict[str, str]:
    return {"authorization": f"Bearer {token}", **({"accept": accept} if accept else {})}


def difference(before: str, now: str) -> str:
    """What was asked, and the first place where two answers part."""
    at = next((at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), 0)
    start = max(0, at - 60)
    return f"{before[:110]} ... {before[start : at + 60]!r} is now {now[start : at + 60]!r}"
