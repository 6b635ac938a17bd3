"""The HTTP API on the real engines, with a failing relay in front of each."""

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
# A busy machine is late by itself: tolerance as a multiple of the deadline, and number of retries.
SLACK = 2.0
TRIES = 5
TICK_SECONDS = 0.02
STRATEGIES = ("hierarchical", "direct", "hybrid")
FOUND = "create_pull_request"
GENEROUS = {"tool_threshold": 0.0, "skill_threshold": 0.2, "limit": 3}
HEADER = "x-toolscript-degraded"
# Stands for the parts of a search that was an error, because nothing could be searched.
NOTHING = "nothing"

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
    """Measures the lag of the event loop: the delay that a busy machine adds."""

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
    """Return the settings of the installation."""
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
        for each in await stores.catalog.items([seen.id for seen in await stores.catalog.scan(0, 100)]):
            skills = [skill for skill, names in SKILLS.items() if each.item.name in names]
            await stores.assignments.set_by_hand(each.id, skills, "ann")
        await writer.worker(silent).drain()


@dataclass(frozen=True)
class Answer:
    """Response to one search over HTTP, with its latency."""

    status: int
    body: Any
    header: str | None
    took: float

    @property
    def metadata(self) -> Any:
        return self.body["metadata"]

    @property
    def degraded(self) -> list[str]:
        if self.status == 503:
            return [NOTHING]
        message: list[str] = self.metadata["degraded"]
        assert self.header == (",".join(message) or None)
        return message

    @property
    def names(self) -> list[str]:
        return [] if self.status == 503 else [tool["name"] for tool in self.body["tools"]]

    @property
    def has_schemas(self) -> bool:
        """Return whether all tools have schemas; all or none must have."""
        value = {tool["input_schema"] is not None for tool in self.body["tools"]}
        assert len(value) == 1
        return value == {True}

    @property
    def said(self) -> object:
        """Return the parts that do not vary between requests."""
        if self.status == 503:
            return self.body["error"]
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
    # Punctuation does not change the meaning of a query, but its vector is not cached yet.
    marks: Callable[[], str] = field(default_factory=_other_marks)

    async def search(self, strategy: str) -> Answer:
        request = {"query": "create pull request" + self.marks(), "strategy": strategy, **GENEROUS}
        with lateness() as late:
            started = time.perf_counter()
            answer = await self.client.post("/api/v1/search", json=request)
            took = time.perf_counter() - started
        return Answer(answer.status_code, answer.json(), answer.headers.get(HEADER), took - late.seconds)

    async def search_all(self) -> Mapping[str, Answer]:
        """Search with all strategies concurrently; return the answers by strategy."""
        answers = await asyncio.gather(*map(self.search, STRATEGIES))
        return dict(zip(STRATEGIES, answers, strict=True))

    async def learn_what_is_whole(self) -> None:
        async with asyncio.timeout(60):
            while len(self.whole) < len(STRATEGIES):
                answers = await self.search_all()
                self.whole.update({name: item.said for name, item in answers.items() if not item.degraded})

    def check(self, strategy: str, answer: Answer) -> None:
        """Check the invariants: a response in time, complete unless it is marked as degraded; none is empty
        because nothing could be searched."""
        assert answer.status in {200, 503}
        assert answer.status == 503 or answer.names or not {"index", "embedding"} & set(answer.degraded)
        assert answer.took < DEADLINE_SECONDS * SLACK
        assert answer.degraded or answer.said == self.whole[strategy]

    async def answers_that_say(
        self, parts: Callable[[str], list[str]], *, by_halves: bool = False
    ) -> Mapping[str, Answer]:
        """Return answers by strategy; retry if another part was late as well, which the answer must report.

        `by_halves`: half of what an engine sends to all searches may be the whole answer to one.
        """
        for _ in range(TRIES):
            answers = await self.search_all()
            for strategy, answer in answers.items():
                self.check(strategy, answer)
                # Without hits nothing else is asked for.
                assert by_halves or not answer.names or set(parts(strategy)) <= set(answer.degraded)
            message = {strategy: answer.degraded for strategy, answer in answers.items()}
            if all(message[strategy] == parts(strategy) for strategy in STRATEGIES):
                return answers
        raise AssertionError(message)

    async def heal(self) -> None:
        for item in (self.embedding, self.qdrant, self.calls, self.postgres):
            await item.heal()

    async def until_whole(self) -> None:
        """Wait until searches are complete again, without a restart."""
        async with asyncio.timeout(20):
            while not await self._is_whole():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def _is_whole(self) -> bool:
        answers = await self.search_all()
        for strategy, answer in answers.items():
            self.check(strategy, answer)
        return not any(answer.degraded for answer in answers.values())
