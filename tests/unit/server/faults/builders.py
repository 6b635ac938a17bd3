"""The HTTP API on the real engines, with something that can fail in front of each of them."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.support.faults import Relay
from tests.support.grpc_faults import CallRelay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from toolscript.core.item_json import item_from_json
from toolscript.core.settings.service import Settings
from toolscript.core.taxonomy import Skill
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.tools.catalog.items import import_items

DIMENSIONS = 64
DEADLINE_SECONDS = 1.0
# A machine that does other things meanwhile is late by itself: so many times the deadline, so often in a row.
SLACK = 2.0
TRIES = 5
TICK_SECONDS = 0.02
STRATEGIES = ("hierarchical", "direct", "hybrid")
FOUND = "create_pull_request"
GENEROUS = {"tool_threshold": 0.0, "skill_threshold": 0.2, "limit": 3}
HEADER = "x-toolscript-degraded"

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}}
SKILLS = {"code": (FOUND, "list_issues"), "mail": ("send_mail",), "files": ("read_file", "write_file")}
ITEMS: list[dict[str, object]] = [
    {"server": "github", "name": FOUND, "description": "Create a pull request", "input_schema": SCHEMA},
    {"server": "github", "name": "list_issues", "description": "List issues", "input_schema": SCHEMA},
    {"server": "mail", "name": "send_mail", "description": "Send a letter", "input_schema": SCHEMA},
    {"server": "files", "name": "read_file", "description": "Read a file", "input_schema": SCHEMA},
    {"server": "files", "name": "write_file", "description": "Write a file", "input_schema": SCHEMA},
]


@dataclass
class Late:
    """By how much this loop got its turns too late: what a busy machine adds to whatever is waited for."""

    seconds: float = 0.0

    async def watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            self.seconds += max(0.0, time.perf_counter() - began - 2 * TICK_SECONDS)


@contextmanager
def lateness() -> Iterator[Late]:
    late = Late()
    watching = asyncio.ensure_future(late.watch())
    try:
        yield late
    finally:
        watching.cancel()


def asking(endpoint: EmbeddingEndpoint) -> dict[str, str]:
    """What an installation has to be told of it."""
    return {
        "TOOLSCRIPT_EMBEDDING_URL": endpoint.url,
        "TOOLSCRIPT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    }


async def fill(settings: Settings) -> None:
    async with open_index_writer(settings) as writer:
        stores = writer.stores
        await import_items(stores.catalog, "test", [item_from_json(item) for item in ITEMS])
        for skill in SKILLS:
            await stores.taxonomy.add(Skill(skill, skill.title()), "ann")
        for one in await stores.catalog.items([seen.id for seen in await stores.catalog.scan(0, 100)]):
            skills = [skill for skill, names in SKILLS.items() if one.item.name in names]
            await stores.assignments.set_by_hand(one.id, skills, "ann")
        await writer.worker(silent).drain()


@dataclass(frozen=True)
class Answer:
    """What one search over HTTP was answered, and how long that took from outside."""

    status: int
    body: Any
    header: str | None
    took: float

    @property
    def metadata(self) -> Any:
        return self.body["metadata"]

    @property
    def degraded(self) -> list[str]:
        said: list[str] = self.metadata["degraded"]
        assert self.header == (",".join(said) or None)
        return said

    @property
    def names(self) -> list[str]:
        return [tool["name"] for tool in self.body["tools"]]

    @property
    def has_schemas(self) -> bool:
        """All of them or none."""
        given = {tool["input_schema"] is not None for tool in self.body["tools"]}
        assert len(given) == 1
        return given == {True}

    @property
    def said(self) -> object:
        """Whatever does not differ from one time to another."""
        used = [self.metadata[name] for name in ("strategy_used", "skill_ids_used", "search_type_used")]
        tools = [{**tool, "score": round(tool["score"], 4)} for tool in self.body["tools"]]
        return tools, self.body["matched_skills"], used, self.degraded


def _other_marks() -> Callable[[], str]:
    count = itertools.count(1)
    return lambda: "!" * (next(count) % 500)


@dataclass(frozen=True)
class Faulty:
    """`qdrant` fails as a whole, `calls` only for one collection."""

    client: httpx2.AsyncClient
    embedding: Relay
    qdrant: Relay
    calls: CallRelay
    postgres: Relay
    whole: dict[str, object] = field(default_factory=dict)
    # Marks do not change what a query means, but it is another one: nobody has its vector yet.
    marks: Callable[[], str] = field(default_factory=_other_marks)

    async def search(self, strategy: str) -> Answer:
        asked = {"query": "create pull request" + self.marks(), "strategy": strategy, **GENEROUS}
        with lateness() as late:
            started = time.perf_counter()
            answer = await self.client.post("/api/v1/search", json=asked)
            took = time.perf_counter() - started
        return Answer(answer.status_code, answer.json(), answer.headers.get(HEADER), took - late.seconds)

    async def search_all(self) -> Mapping[str, Answer]:
        """By strategy, all at once."""
        answers = await asyncio.gather(*map(self.search, STRATEGIES))
        return dict(zip(STRATEGIES, answers, strict=True))

    async def learn_what_is_whole(self) -> None:
        async with asyncio.timeout(60):
            while len(self.whole) < len(STRATEGIES):
                answers = await self.search_all()
                self.whole.update({name: one.said for name, one in answers.items() if not one.degraded})

    def check(self, strategy: str, answer: Answer) -> None:
        """What holds whatever fails: an answer, in time, and whole unless it says that it is not."""
        assert answer.status == 200
        assert answer.took < DEADLINE_SECONDS * SLACK
        assert answer.degraded or answer.said == self.whole[strategy]

    async def answers_that_say(self, parts: Callable[[str], list[str]]) -> Mapping[str, Answer]:
        """By strategy. Where another part was late as well, which an answer has to say, they are asked again."""
        for _ in range(TRIES):
            answers = await self.search_all()
            for strategy, answer in answers.items():
                self.check(strategy, answer)
                assert set(parts(strategy)) <= set(answer.degraded)
            said = {strategy: answer.degraded for strategy, answer in answers.items()}
            if all(said[strategy] == parts(strategy) for strategy in STRATEGIES):
                return answers
        raise AssertionError(said)

    async def heal(self) -> None:
        for one in (self.embedding, self.qdrant, self.calls, self.postgres):
            await one.heal()

    async def until_whole(self) -> None:
        """Without a restart, in bounded time."""
        async with asyncio.timeout(20):
            while not await self._is_whole():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _is_whole(self) -> bool:
        answers = await self.search_all()
        for strategy, answer in answers.items():
            self.check(strategy, answer)
        return not any(answer.degraded for answer in answers.values())
