"""The first scenarios of source document 001 at default settings, on tools as real servers describe them."""

import json
from pathlib import Path

import pytest

from tests.unit.gateway.search.builders import index_of, item
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.embedding.items import embed_items
from toolscript.core.embedding.scale import measure_scale
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.items import Item
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.gateway.search import LocalSearch

pytestmark = [
    pytest.mark.requirement("TS-002", "TS-003"),
    pytest.mark.states("S1-006", "S1-013", "S1-014", "S1-015"),
]

WORDS = json.loads(Path(__file__).with_name("source_tools.json").read_text("utf-8"))
CLOCK = {"get_current_time": "Get current time in a specific timezone"}
SHELL = {"bash": "Run a shell command and return its output"}


def tools(**servers: dict[str, str]) -> list[Item]:
    return [
        item(server.replace("_", "-"), name, text)
        for server, named in servers.items()
        for name, text in named.items()
    ]


COMMANDER, BEFORE, FILES = (
    WORDS[name] for name in ("desktop-commander 0.2.52", "desktop-commander 0.1.39", "filesystem")
)
# By name: the tools, those that find a text in files, and the shells.
CATALOGS = {
    "of today": (tools(desktop_commander=COMMANDER, filesystem=FILES), {"start_search"}, {"start_process"}),
    "of before": (tools(desktop_commander=BEFORE, filesystem=FILES), {"search_code"}, {"execute_command"}),
    "one server": (tools(desktop_commander=BEFORE), {"search_code"}, {"execute_command"}),
    "two searches": (
        tools(
            text={"grep": "Search file contents with a regular expression"},
            code={"search_code": "Search for text patterns within file contents"},
            shell=SHELL,
            time=CLOCK,
        ),
        {"grep", "search_code"},
        {"bash"},
    ),
    "one grep": (
        tools(
            text={"grep": "Search for a pattern in files"},
            shell=SHELL,
            fetch={"fetch": "Fetches a URL from the internet and extracts its contents as markdown"},
            memory={"create_entities": "Create multiple new entities in the knowledge graph"},
            time=CLOCK,
        ),
        {"grep"},
        {"bash"},
    ),
}


async def answer_of(text: str, items: list[Item], embedder: Embedder) -> LocalAnswer:
    search = LocalSearch(default_capabilities(), DEFAULT_WEIGHTS)
    search.index, search.embedder = index_of(items, await embed_items(embedder, items)), embedder
    search.scale = await measure_scale(embedder)
    return await search.search(LocalQuery(text))


async def check(catalog: str, embedder: Embedder) -> None:
    items, finders, shells = CATALOGS[catalog]
    found = await answer_of("find files containing specific text", items, embedder)
    assert found.good_match
    assert finders & {hit.item.name for hit in found.hits}
    ran = await answer_of("commit my changes to git", items, embedder)
    assert ran.good_match
    (shell,) = [hit for hit in ran.hits if hit.item.name in shells]
    assert shell.reason == "Capability inference (shell → git operations)"
    assert shell.parts.boost > 0.4
    misspelt = await answer_of("read_fil", items, embedder)
    read = {item.name for item in items} & {"read_file", "read_text_file"}
    assert not read or misspelt.hits[0].item.name in read


@pytest.mark.parametrize("catalog", CATALOGS)
async def test_the_scenarios_are_answered_with_the_built_in_model(catalog: str) -> None:
    await check(catalog, StaticEmbedder())


@pytest.mark.engines
@pytest.mark.parametrize("catalog", CATALOGS)
async def test_the_scenarios_are_answered_with_a_real_model(catalog: str, model_folder: str) -> None:
    model = LocalEmbedder(model_folder, threads=1)
    try:
        await check(catalog, model)
    finally:
        model.close()
