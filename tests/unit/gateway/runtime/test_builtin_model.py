"""The built-in model ranks until the gateway's own is ready, and where there is none."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, World, open_world, tools
from toolscript.core.errors import EmbedderUnavailable, ModelNotFound
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway.indexing import BATCH
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-006")

QUERY = LocalQuery("look into a document", threshold=0.0)
LITERAL = LocalQuery("look into a document", threshold=0.0, search_type=SearchType.SEMANTIC)


def files_of(folder: Path) -> list[Path]:
    return list(folder.glob("*"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Return a gateway with the built-in model, whose own model is still loading."""
    async with open_world(tmp_path, model=False, builtin=True) as opened:
        opened.use("files")
        opened.servers.put("files", *FILES)
        await opened.search.until_names("read_file", "write_file")
        yield opened


async def test_it_answers_until_the_model_is_loaded_and_the_model_embeds_once(world: World) -> None:
    before = await world.gateway.search(QUERY)
    assert (before.semantic, before.model) == (True, "builtin")
    assert before.hint == "ranked by the built-in model: the embedding model is still loading"
    health = await world.gateway.health()
    assert (health.semantic, health.model, health.is_fallback) == (True, "builtin", True)
    world.model_may_come.set()
    await world.settled()
    after = await world.gateway.search(QUERY)
    assert (after.semantic, after.model, after.hint) == (True, world.embedder.model.name, "")
    assert (await world.gateway.health()).is_fallback is False
    assert len(world.embedder.items_embedded) == len(FILES)


async def test_it_answers_until_the_model_has_embedded_every_tool(world: World) -> None:
    world.embedder.permits = asyncio.Semaphore(0)
    world.servers.put("files", *FILES, *tools("files", 2 * BATCH))
    world.model_may_come.set()
    await world.embedder.waiting.wait()
    world.embedder.permits.release()
    await world.search.until(lambda search: len(search.index) == 2 * BATCH + len(FILES))
    part = await world.gateway.search(QUERY)
    assert (part.model, part.hits[0].parts.semantic is not None) == ("builtin", True)
    for _ in range(3):
        world.embedder.permits.release()
    await world.settled()
    whole = await world.gateway.search(QUERY)
    assert (whole.model, whole.hint) == (world.embedder.model.name, "")
    assert len(world.embedder.items_embedded) == len(set(world.embedder.items_embedded)) == 2 * BATCH + len(FILES)


async def test_it_answers_where_the_model_cannot_be_loaded_and_says_why(world: World) -> None:
    world.model_failure = ModelNotFound("no such model", hint="give a folder")
    world.model_may_come.set()
    await world.settled()
    world.servers.put("files", *FILES, *MAIL)
    await world.search.until_names("read_file", "write_file", "send_mail")
    answer = await world.gateway.search(LocalQuery("post an e-mail", threshold=0.0))
    assert (answer.hits[0].item.name, answer.model) == ("send_mail", "builtin")
    assert answer.hint == "ranked by the built-in model: no such model (give a folder)"


async def test_it_answers_where_the_model_cannot_embed_a_single_tool(world: World) -> None:
    world.embedder.failure = EmbedderUnavailable("the model ran out of memory")
    world.model_may_come.set()
    await world.settled()
    answer = await world.gateway.search(QUERY)
    assert (answer.model, answer.hint) == ("builtin", "ranked by the built-in model: the model ran out of memory")


async def test_it_does_not_stand_in_for_the_model_in_literal_mode(world: World) -> None:
    answer = await world.gateway.search(LITERAL)
    assert (answer.semantic, answer.model) == (False, None)
    assert "keyword search only: the embedding model is still loading" in answer.hint


async def test_its_vectors_are_not_written_over_those_of_the_model(world: World, tmp_path: Path) -> None:
    world.model_failure = ModelNotFound("no such model")
    world.model_may_come.set()
    await world.settled()
    assert (await world.gateway.search(QUERY)).model == "builtin"
    assert not files_of(tmp_path / "embeddings")
