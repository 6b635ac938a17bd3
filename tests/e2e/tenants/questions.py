"""Deterministic queries of every kind, with comparable responses.

The neighbour has the reverse word frequencies: a word that is rare here is common there, so that IDF over both
tenants would change the responses.
"""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2

from tests.e2e.tenants.checking import found_in
from tests.e2e.tenants.requests_of_tenants import EVENTS, LINES

SYLLABLES = ("ba", "ko", "ri", "mu", "ten", "sol", "va", "pel", "dor", "ni")
WORDS = tuple(f"{first}{second}{third}" for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES[:4])
WEIGHTS = tuple(1 / (rank + 1) for rank in range(len(WORDS)))
# Fields that vary between requests and do not depend on documents.
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
    """Return request bodies, with the type of the response."""
    chance = random.Random(11)
    for index in range(texts):
        rare, common = chance.choice(WORDS[100:]), chance.choice(WORDS[:10])
        text = {"query": f"{rare} {common} {chance.choice(WORDS)}"}
        for search_type in ("semantic", "keyword", "hybrid"):
            yield {**text, "search_type": search_type, "top_k": (10, 200, 3, 50)[index]}, ""
        for fusion in ("rrf", "zscore", "best"):
            yield {**text, "fusion": fusion, "top_k": (10, 200, 3, 50)[index]}, ""
        yield {**text, "offset": (1, 5, 40, 120)[index]}, ""
        yield {**text, "metadata_fields": ["n"], "snippet_max_chars": 60}, ""
        yield {**text, "cursor": "*", "top_k": 60}, ""
        yield {**text, "filters": {"must": [{"field": "tags", "op": "in", "value": ["tag-1"]}]}}, ""
        yield text, (LINES, EVENTS)[index % 2]
    for field, op, value in OPS:
        for where in ("must", "should", "must_not")[:texts]:
            yield {"filters": {where: [{"field": field, "op": op, "value": value}]}, "top_k": 20}, ""
    yield {"cursor": "*", "top_k": 150}, ""


async def answers(client: httpx2.AsyncClient, token: str, ids: Sequence[str], texts: int) -> list[str]:
    """Return the responses to all queries, without varying fields. `texts`: up to four more queries."""
    value = []
    for body, accept in searches(texts):
        value += [json.dumps([body, accept, *page]) async for page in _pages(client, token, body, accept)]
    for id_ in ids:
        answer = await client.get(f"/documents/{id_}", headers=_with(token))
        assert answer.status_code == 200, answer.text
        value.append(answer.text)
    return value


async def _pages(client: httpx2.AsyncClient, token: str, body: Json, accept: str) -> Any:
    """Return one page, or all pages of a cursor."""
    cursor: str | None = ""
    while cursor is not None:
        requests = {**body, "cursor": cursor} if cursor else body
        answer = await client.post("/search", json=requests, headers=_with(token, accept))
        assert answer.status_code == 200, answer.text
        hits, end = found_in(accept, answer.text)
        cursor = end["next_cursor"]
        yield hits, {name: value for name, value in end.items() if name not in PASSING}


def _with(token: str, accept: str = "") -> dict[str, str]:
    return {"authorization": f"Bearer {token}", **({"accept": accept} if accept else {})}


def difference(before: str, now: str) -> str:
    """Return the query, and the first difference of two responses."""
    index = next((index for index, (item, other) in enumerate(zip(before, now, strict=False)) if item != other), 0)
    start = max(0, index - 60)
    return f"{before[:110]} ... {before[start : index + 60]!r} is now {now[start : index + 60]!r}"
