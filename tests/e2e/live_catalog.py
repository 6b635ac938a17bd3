"""One `toolscript serve`, and nothing beside it: tools that come, change and go under searches."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import numpy as np

from tests.e2e.served import served

SOURCE, SERVER = "live", "depot"
TOKEN = "of-these-tests"
LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 300.0
VERBS = ("weigh", "paint", "count", "seal", "label", "rinse", "stack", "measure")
THINGS = ("barrel", "ladder", "kettle", "anchor", "basket", "lantern", "saddle", "carpet", "mirror", "trumpet")
# Requests that every tool of the depot suits.
AROUND = ("a job in the depot", "handle things in the depot", "depot work by number")
LIVE = {
    "TOOLSCRIPT_SERVE_WORKER": "true",
    "TOOLSCRIPT_SKILL_COPY": "true",
    "TOOLSCRIPT_ADMIN_TOKEN": TOKEN,
}


def tool(number: int, change: str = "") -> dict[str, object]:
    verb, thing = VERBS[number % len(VERBS)], THINGS[number // len(VERBS) % len(THINGS)]
    description = f"{verb.title()} the {thing} with the number {number} in the depot. {change}".strip()
    return {"server": SERVER, "name": name_of(number), "description": description}


def name_of(number: int) -> str:
    return f"{VERBS[number % len(VERBS)]}_{THINGS[number // len(VERBS) % len(THINGS)]}_{number}"


@dataclass
class Depot:
    client: httpx2.AsyncClient
    # Names that must be in no answer to a search that begins later.
    gone: set[str] = field(default_factory=set)
    shown_after_removal: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    search_seconds: list[float] = field(default_factory=list)
    search_statuses: list[int] = field(default_factory=list)

    async def ask(self, method: str, path: str, expected: int, json: object = None) -> Any:
        answer = await self.client.request(method, f"/api/v1{path}", json=json)
        assert answer.status_code == expected, answer.text
        return answer.json() if answer.content else None

    async def put(self, tools: Sequence[Mapping[str, object]]) -> int:
        """Return the job's id as soon as the put is answered."""
        return int((await self.ask("POST", "/jobs", 202, {"source": SOURCE, "items": list(tools)}))["id"])

    async def until_over(self, job: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                state = (await self.ask("GET", f"/jobs/{job}", 200))["state"]
                if state not in {"queued", "running"}:
                    break
                await asyncio.sleep(LOOK_SECONDS)
        assert state == "done"

    async def search(self, query: str, limit: int = 20) -> dict[str, str]:
        """Return the descriptions by name."""
        gone = frozenset(self.gone)
        started = time.perf_counter()
        asked = {"query": query, "limit": limit, "threshold": 0.0, "include_schemas": False}
        answer = await self.client.post("/api/v1/tools/search", json=asked)
        self.search_seconds.append(time.perf_counter() - started)
        self.search_statuses.append(answer.status_code)
        if answer.status_code != 200:
            return {}
        body = answer.json()
        hits = [*body["results"], *body["metadata"]["near_misses"]]
        self.ids.update({hit["name"]: hit["id"] for hit in hits})
        self.shown_after_removal += [hit["name"] for hit in hits if hit["name"] in gone]
        return {hit["name"]: hit["description"] for hit in hits}

    async def until_found(self, number: int, change: str = "") -> None:
        """Wait until a search shows the tool as it is now."""
        name, wanted = name_of(number), tool(number, change)["description"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                if (await self.search(name.replace("_", " "))).get(name) == wanted:
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def remove(self, number: int) -> None:
        name = name_of(number)
        await self.ask("DELETE", f"/tools/{self.ids[name]}", 204)
        self.gone.add(name)

    async def keep_searching(self, per_second: float) -> None:
        async with asyncio.TaskGroup() as searches:
            for turn in itertools.count():
                searches.create_task(self.search(AROUND[turn % len(AROUND)], limit=50))
                await asyncio.sleep(1 / per_second)

    @asynccontextmanager
    async def under_searches(self, per_second: float = 5.0) -> AsyncIterator[None]:
        searching = asyncio.create_task(self.keep_searching(per_second))
        try:
            yield
        finally:
            searching.cancel()
            await asyncio.wait({searching})


def kinds(count: int) -> Iterator[tuple[str, int]]:
    """Yield so many puts, changes and removals: each third tool that was put a while ago changes, then leaves."""
    for turn in range(count):
        kind, number = ("put", "change", "remove")[turn % 3], turn // 3
        yield kind, number


@dataclass(frozen=True)
class Took:
    """Seconds from the answer to a write until searches show it."""

    kind: str
    seconds: float


async def one_after_another(depot: Depot, count: int, per_second: float) -> list[Took]:
    """Begin so many writes a second."""
    took = list[Took]()
    began = time.perf_counter()
    for turn, (kind, number) in enumerate(kinds(count)):
        await asyncio.sleep(max(0.0, began + turn / per_second - time.perf_counter()))
        change = "Now with a certificate." if kind == "change" else ""
        await (depot.remove(number) if kind == "remove" else depot.put([tool(number, change)]))
        answered = time.perf_counter()
        if kind == "remove":
            assert name_of(number) not in await depot.search(name_of(number).replace("_", " "))
        else:
            await depot.until_found(number, change)
        took.append(Took(kind, time.perf_counter() - answered))
    return took


@asynccontextmanager
async def depot_of(environment: Mapping[str, str]) -> AsyncIterator[Depot]:
    """Serve an installation that has no index, and no tool."""
    with served({**environment, **LIVE}) as server:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        ) as client:
            yield Depot(client)


def figures(seconds: Sequence[float]) -> str:
    p50, p95 = np.percentile(seconds, (50, 95))
    return f"{len(seconds)}: p50 {p50:.3f} s, p95 {p95:.3f} s, max {max(seconds):.3f} s"
