"""Two namespaces in one catalog on the real engines: what one of them answers with and without the other.

By hand, in databases and under aliases of its own on the PostgreSQL of the environment, and with its own Qdrant,
whose CPU time counts as the cost of a search. All of it is removed at the end:

    python -m tests.engines.namespaces_at_scale --items 20000 --searches 10000 --rounds 10
"""

import argparse
import asyncio
import json
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.synthetic import synthetic_texts
from tests.conftest import fresh_database, fresh_installation
from tests.support.secured_qdrant import engine_folder, secured_qdrant
from tests.unit.tools.namespaces.builders import Client, Service, indexed, serving
from toolscript.core.items import Item, ItemKind
from toolscript.core.postgres.migrate import upgrade
from toolscript.core.qdrant import index as qdrant_index
from toolscript.core.qdrant import wire
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Classification, Classified, SuggestedSkill
from toolscript.server.skills import default_skills
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.catalog.items import import_items
from toolscript.tools.skills.importing import load_defaults

Json = dict[str, Any]

ALPHA, BETA = "alpha", "beta"
SOURCE = "items"
CANARIES = 200
KINDS = (ItemKind.TOOL,) * 18 + (ItemKind.PROMPT, ItemKind.RESOURCE)
SKILLS = ("file_operations", "communication", "search_discovery")
STRATEGIES, SEARCH_TYPES = ("hierarchical", "direct", "hybrid"), ("hybrid", "semantic", "keyword")
# What two equal requests may answer differently: the id of the request and the time that it took.
VOLATILE = frozenset({"took_ms", "stages_ms", "query_id"})
SHOWN = 10
PATIENCE_SECONDS = 600.0
# Searches before it is the other catalog's turn, where the cost is compared.
TURN = 20


def canaries() -> list[str]:
    """Return words that are in one namespace only, and in no language."""
    letters = "abcdefghijklmnopqrst"
    return [f"zwuxq{first}v{second}j" for first, second in product(letters, letters)][:CANARIES]


def items_of(count: int, seed: int, planted: Sequence[str] = ()) -> list[Item]:
    """Return items of the same kinds and subjects for every seed; `planted` are words to put everywhere."""
    texts = synthetic_texts(count, seed)
    return [_item(number, text.split(), planted) for number, text in enumerate(texts)]


def _item(number: int, words: list[str], planted: Sequence[str]) -> Item:
    plain = [word.strip(".,").lower() for word in words if len(word) > 4]
    server, name = f"{plain[0]}-server-{number % 97}", f"{plain[1]}_{plain[2]}_{number}"
    description, argument = " ".join(words), plain[3]
    if planted:
        first, second = planted[number % len(planted)], planted[number * 7 % len(planted)]
        server, name, argument = f"{first}-{server}", f"{name}_{second}", f"{argument}_{first}"
        description = f"{first.title()} {second}: {description} {first}"
    properties = {argument: {"type": "string", "description": " ".join([argument, *plain[4:6]])}}
    schema = {"type": "object", "properties": properties}
    return Item(f"item-{number}", KINDS[number % 20], server, name, description, input_schema=schema)


async def fill(stores: Stores, namespace: str, items: Sequence[Item], suggested: Sequence[str] = ()) -> None:
    """Store and index the items of a namespace. Its first items suggest skills of these names."""
    before = {seen.id for seen in await _all_items(stores)}
    await import_items(stores.catalog.of(namespace), SOURCE, items)
    new = [seen for seen in await _all_items(stores) if seen.id not in before]
    classified = [
        Classified(
            seen.id, seen.version, Classification(suggestion=SuggestedSkill(f"{word} keeping", word)), namespace
        )
        for seen, word in zip(new, suggested, strict=False)
    ]
    await stores.assignments.record(classified)
    await index(stores)


async def _all_items(stores: Stores) -> list[Any]:
    seen: list[Any] = []
    while page := await stores.catalog.scan(seen[-1].id if seen else 0, 5_000):
        seen += page
    return seen


async def index(stores: Stores) -> None:
    await indexed(stores, HashEmbedder(dimensions=64))
    await until_settled(stores)


async def until_settled(stores: Stores) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    listed = await stores.qdrant.collections.List(wire.ListCollectionsRequest())
    for name in [str(entry.name) for entry in listed.collections]:
        request = wire.GetCollectionInfoRequest(collection_name=name)
        while (await stores.qdrant.collections.Get(request)).result.status != wire.CollectionStatus.Green:
            assert time.monotonic() < ends_at, "the engine does not come to rest"
            await asyncio.sleep(0.2)


class Searches:
    """Random searches of a namespace: any strategy, type and option, about things of it and of its neighbour."""

    def __init__(
        self, seed: int, ours: Sequence[Item], theirs: Sequence[Item], ids: Sequence[int], namespace: str = ALPHA
    ) -> None:
        self._random = random.Random(seed)
        self._namespace = namespace
        self._ours, self._theirs, self._ids = ours, theirs, ids
        self._canaries = canaries()

    def make(self, count: int) -> list[Json]:
        return [self._search() for _ in range(count)]

    def _search(self) -> Json:
        pick = self._random.choice
        options = {
            "strategy": pick(STRATEGIES),
            "search_type": pick(SEARCH_TYPES),
            "preset": pick(("precision", "balanced", "recall")),
            "limit": pick((1, 5, 50)),
            "include_schemas": pick((True, False)),
            "explain": pick((True, False)),
        }
        rarely: Json = {
            "threshold": 0.0,
            "kind": pick(("tool", "prompt", "resource")),
            "skill_ids": [pick(SKILLS)],
            "why_not": pick(
                (str(pick(self._ids)), _shown_name(pick(self._theirs)), _shown_name(pick(self._ours)))
            ),
            "namespaces": [self._namespace],
        }
        chosen = {name: value for name, value in rarely.items() if self._random.random() < 1 / 4}
        return {"query": self._text(), **options, **chosen}

    def _text(self) -> str:
        pick, words = self._random.choice, self._canaries
        ours, theirs = pick(self._ours).description.split(), pick(self._theirs).description.split()
        return pick(
            (
                " ".join(ours[:8]),
                " ".join(self._random.sample(ours, 4)),
                f"{pick(ours)} {pick(ours)} and then {pick(ours)}",
                pick(words),
                " ".join(self._random.sample(words, 3)),
                f"{pick(words)} {' '.join(ours[:4])}",
                " ".join(theirs[:8]),
                pick(self._theirs).name,
                "qqqq wwww zzzz",
            )
        )


def _shown_name(item: Item) -> str:
    return f"{item.server}__{item.name}"


@dataclass
class Comparison:
    """The answers of a namespace, as they were without a neighbour, and what later ones have of it."""

    client: Client
    namespace: str
    searches: Sequence[Json]
    planted: re.Pattern[str] = field(default_factory=lambda: re.compile("|".join(canaries())))
    first: list[str] = field(default_factory=list)
    hits: int = 0
    empty: int = 0
    compared: int = 0
    different: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    async def record(self) -> None:
        self.first = [self._comparable(await self._answer(body)) for body in self.searches]

    async def compare(self, count: int | None = None) -> None:
        for body, before in list(zip(self.searches, self.first, strict=True))[:count]:
            text = await self._answer(body)
            self.compared += 1
            now = self._comparable(text)
            if now != before:
                self.different.append(f"{json.dumps(body)}\n  {before[:2000]}\n  {now[:2000]}")
            self._look_for_leaks(body, text)

    async def _answer(self, body: Json) -> str:
        answer = await self.client.ask("POST", "/api/v1/tools/search", body)
        assert answer.status_code == 200, answer.text
        return answer.text

    def _look_for_leaks(self, body: Json, text: str) -> None:
        """Find canaries that the request did not contain itself, and items of another namespace."""
        found = set(self.planted.findall(text.lower())) - set(self.planted.findall(json.dumps(body).lower()))
        results = json.loads(text)["results"]
        self.hits += len(results)
        self.empty += not results
        if found or any(result["namespace"] != self.namespace for result in results):
            self.leaks.append(f"{json.dumps(body)}: {found} {text[:2000]}")

    def _comparable(self, text: str) -> str:
        return json.dumps(_stable(json.loads(text)))


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stable(part) for name, part in value.items() if name not in VOLATILE}
    return [_stable(part) for part in value] if isinstance(value, list) else value


@asynccontextmanager
async def opened(
    settings: Settings, items: Sequence[Item], namespace: str = ALPHA
) -> AsyncIterator[tuple[Service, Stores]]:
    """Serve a catalog that has these items in a namespace."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_stores(settings) as stores:
            await load_defaults(stores.taxonomy, default_skills())
            await fill(stores, namespace, items)
            async with serving(Path(folder), stores, deadline_seconds=120) as service:
                yield service, stores


@contextmanager
def whole_sample(items: int) -> Iterator[None]:
    usual, qdrant_index.SAMPLE = qdrant_index.SAMPLE, max(qdrant_index.SAMPLE, items)
    try:
        yield
    finally:
        qdrant_index.SAMPLE = usual


async def isolated(settings: Settings, items: int, searches: int, seed: int, namespace: str = ALPHA) -> Comparison:
    """Compare the answers of a namespace without a neighbour, beside one, and after it has left.

    Statistics are taken from all points instead of a sample: a second sample would differ without any neighbour.
    """
    ours, theirs = items_of(items // 2, seed), items_of(items // 2, seed + 1, canaries())
    with whole_sample(items):
        return await _compared(settings, ours, theirs, searches, seed, namespace)


async def _compared(
    settings: Settings, ours: Sequence[Item], theirs: Sequence[Item], searches: int, seed: int, namespace: str
) -> Comparison:
    items = len(ours) + len(theirs)
    async with opened(settings, ours, namespace) as (service, stores):
        ids = range(1, items + items // 10)
        bodies = Searches(seed, ours, theirs, ids, namespace).make(searches)
        comparison = Comparison(service.client(namespace), namespace, bodies)
        await comparison.record()
        _say(f"{searches} answers without a neighbour")
        await fill(stores, BETA, theirs, canaries())
        _say(f"{len(theirs)} items of the neighbour indexed")
        await comparison.compare()
        await _require_canaries(service.client(BETA))
        while await stores.contents.remove_source(SOURCE, 1_000, BETA):
            pass
        await index(stores)
        await comparison.compare(searches // 5)
        return comparison


async def _require_canaries(neighbour: Client) -> None:
    """Check that the neighbour itself finds what is planted: a search that finds nothing proves nothing."""
    for word in canaries()[::20]:
        answer = await neighbour.ask("POST", "/api/v1/tools/search", {"query": word, "threshold": 0.0})
        assert word in answer.text.replace(f'"query":"{word}"', ""), word
    suggestions = await neighbour.ask("GET", "/api/v1/suggestions")
    assert suggestions.status_code == 403 or canaries()[0] in suggestions.text


@dataclass
class Cost:
    """CPU seconds of rounds of searches, in this process and in the engine."""

    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return sum(self.beside) / sum(self.alone)

    @property
    def ratios(self) -> list[float]:
        return [beside / alone for alone, beside in zip(self.alone, self.beside, strict=True)]


async def cost_of(alone: Settings, beside: Settings, items: int, rounds: int, searches: int, seed: int) -> Cost:
    """Search two catalogs in turns: alpha alone, and alpha beside a neighbour of its size."""
    ours, theirs = items_of(items // 2, seed), items_of(items // 2, seed + 1, canaries())
    cost = Cost()
    async with AsyncExitStack() as stack:
        first, _ = await stack.enter_async_context(opened(alone, ours))
        second, stores = await stack.enter_async_context(opened(beside, ours))
        await fill(stores, BETA, theirs, canaries())
        for number in range(-1, rounds):
            bodies = Searches(seed + number, ours, theirs, range(1, items)).make(searches)
            alone_seconds, beside_seconds = await _spent([first.client(ALPHA), second.client(ALPHA)], bodies)
            if number < 0:
                continue
            cost.alone.append(alone_seconds)
            cost.beside.append(beside_seconds)
            _say(f"round {number + 1}: {alone_seconds:.2f} s alone, {beside_seconds:.2f} s beside a neighbour")
    return cost


async def _spent(clients: Sequence[Client], bodies: Sequence[Json]) -> list[float]:
    """Send every search to each client, in turns of a few; return the CPU seconds of each client."""
    spent = [0.0 for _ in clients]
    for start in range(0, len(bodies), TURN):
        order = list(enumerate(clients))
        for place, client in order if start // TURN % 2 else reversed(order):
            before = cpu_seconds()
            for body in bodies[start : start + TURN]:
                assert (await client.ask("POST", "/api/v1/tools/search", body)).status_code == 200
            spent[place] += cpu_seconds() - before
    return spent


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the engine, which is its child."""
    return time.process_time() + sum(_nanoseconds(pid) for pid in _descendants(os.getpid())) / 1e9


def _descendants(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield child
            yield from _descendants(child)


def _nanoseconds(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


@contextmanager
def own_settings(count: int) -> Iterator[list[Settings]]:
    """Yield the settings of installations of their own, in one Qdrant that ends with them."""
    engines = Settings()
    with ExitStack() as stack:
        home = stack.enter_context(engine_folder("namespaces"))
        grpc_port = stack.enter_context(secured_qdrant(home, ()))
        address = {"qdrant_url": f"http://127.0.0.1:{grpc_port - 1}", "qdrant_grpc_port": grpc_port}
        own = engines.model_copy(update=address)
        installations = []
        for _ in range(count):
            url = stack.enter_context(fresh_database(engines, "template1"))
            upgrade(url)
            installations.append(stack.enter_context(fresh_installation(own, url, "words")).settings)
        yield installations


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000, help="items of both namespaces together")
    parser.add_argument("--searches", type=int, default=10_000, help="that are compared; 0 leaves that out")
    parser.add_argument("--rounds", type=int, default=10, help="of the comparison of cost; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # Searches without a matching skill say so.
    logging.getLogger("toolscript").setLevel(logging.ERROR)
    with own_settings(3) as (settings, alone, beside):
        failures = _compare(settings, given) if given.searches else 0
        if given.rounds:
            cost = asyncio.run(cost_of(alone, beside, given.items, given.rounds, 500, given.seed))
            _say(
                f"CPU of a search beside a neighbour: {cost.ratio:.3f} times that alone "
                f"(median of rounds {median(cost.ratios):.3f}, {min(cost.ratios):.3f} to {max(cost.ratios):.3f})"
            )
    return 1 if failures else 0


def _compare(settings: Settings, given: argparse.Namespace) -> int:
    result = asyncio.run(isolated(settings, given.items, given.searches, given.seed))
    for line in [*result.different[:SHOWN], *result.leaks[:SHOWN]]:
        _say(line)
    _say(
        f"{result.compared} answers with {result.hits} hits ({result.empty} without any) compared: "
        f"{len(result.different)} differ, {len(result.leaks)} show something of the neighbour"
    )
    return len(result.different) + len(result.leaks)


if __name__ == "__main__":
    sys.exit(main())
