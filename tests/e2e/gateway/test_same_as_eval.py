"""What `eval` measures is what a person gets: the command line, HTTP and MCP show the same, request by request.

With `explain` the first two name the twins of a hit as well, which `eval` counts.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client

from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, new_machine, until
from toolscript.core.embedding.static_table import BUILTIN, StaticEmbedder
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.model import DEFAULT_LIMIT
from toolscript_eval.dataset import Dataset, read_dataset
from toolscript_eval.gateway import GatewayEngine, PreparedItems, gateway_search

pytestmark = [pytest.mark.slow, pytest.mark.requirement("TS-002", "TS-003")]

DATA = Path(__file__).parents[4] / "shared" / "data" / "ordinary"


class Seen(NamedTuple):
    """What a person sees of a request: the tools, with those of steps and guesses, and the verdict."""

    tools: frozenset[str]
    good_match: bool


@pytest.fixture(scope="module")
def ordinary() -> Dataset:
    if not DATA.is_dir():
        pytest.skip("the judged sets are not beside this checkout")
    return read_dataset(DATA)


@pytest.fixture(scope="module")
def by_eval(ordinary: Dataset) -> list[Seen]:
    async def ask() -> list[Seen]:
        embedder = StaticEmbedder()
        engine = GatewayEngine(gateway_search(DEFAULT_WEIGHTS), embedder, PreparedItems(embedder))
        await engine.load(ordinary.items)
        shown = [(await engine.answer(query.text)).shown for query in ordinary.queries]
        return [Seen(one.keys, one.good_match) for one in shown if one is not None]

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def running(
    ordinary: Dataset, weights: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Machine, Gateway]]:
    machine = new_machine(tmp_path_factory.mktemp("same") / "machine", weights)
    machine = machine.also(TOOLSCRIPT_SEARCH_MODEL=BUILTIN)
    file = str(DATA / "tools.jsonl")
    servers = sorted({item.server for item in ordinary.items})
    machine.configure({server: mcp_server("catalog", file, server) for server in servers})
    with machine.gateway() as gateway:
        until(lambda: _all_embedded(gateway, len(ordinary.items)), "all tools with vectors")
        yield machine, gateway


def _all_embedded(gateway: Gateway, tools: int) -> bool:
    nearest = gateway.search("x", limit=100, threshold=0, explain=1)["results"]
    return gateway.health()["items"] == tools and all(hit["parts"]["semantic"] is not None for hit in nearest)


def seen(answer: Mapping[str, Any], name: str = "toolId") -> Seen:
    """Return what the JSON of an answer shows; over MCP, a step has nothing but the names of its tools."""
    of_steps = [[*step.get("results", ()), *step.get("near_misses", ())] for step in answer.get("steps", ())]
    hits = [*answer["results"], *answer.get("near_misses", ()), *chain.from_iterable(of_steps)]
    names = [step.get("tools", ()) for step in answer.get("steps", ())]
    tools = chain(chain.from_iterable(names), *(_named(hit, name) for hit in hits))
    return Seen(frozenset(tools), answer["good_match"])


def _named(hit: Mapping[str, Any] | str, name: str) -> list[str]:
    return [hit] if isinstance(hit, str) else [hit[name], *hit.get("also", ())]


def otherwise(ordinary: Dataset, by_eval: Sequence[Seen], shown: Sequence[Seen]) -> list[tuple[str, Seen, Seen]]:
    rows = zip((query.text for query in ordinary.queries), by_eval, shown, strict=True)
    return [row for row in rows if row[1] != row[2]]


def test_the_command_line_shows_what_eval_measures(
    ordinary: Dataset, by_eval: list[Seen], running: tuple[Machine, Gateway]
) -> None:
    queries = "".join(f"{query.text}\n" for query in ordinary.queries)
    lines = running[0].run("search", "--json", "--explain", standard_input=queries).stdout.splitlines()
    assert otherwise(ordinary, by_eval, [seen(json.loads(line)) for line in lines]) == []


def test_http_shows_what_eval_measures(
    ordinary: Dataset, by_eval: list[Seen], running: tuple[Machine, Gateway]
) -> None:
    answers = [seen(running[1].search(query.text, explain=1)) for query in ordinary.queries]
    assert otherwise(ordinary, by_eval, answers) == []


async def test_mcp_shows_what_eval_measures(
    ordinary: Dataset, by_eval: list[Seen], running: tuple[Machine, Gateway]
) -> None:
    async with Client(f"{running[1].url}/mcp") as client:
        answers = [
            await client.call_tool("search_tools", {"query": query.text, "limit": DEFAULT_LIMIT})
            for query in ordinary.queries
        ]
    shown = [seen(answer.structured_content or {}, "tool") for answer in answers]
    assert otherwise(ordinary, by_eval, shown) == []
