"""The index follows every change of the servers and the model."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, World, open_world, tool, tools
from toolscript.core.errors import EmbedderUnavailable, ModelNotFound, NotReady
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer
from toolscript.core.retrieval.query import SearchType
from toolscript.gateway import indexing
from toolscript.gateway.index import Analysed, analyse
from toolscript.gateway.indexing import BATCH
from toolscript.gateway.local_gateway import LocalGateway
from toolscript.gateway.model import LocalQuery

pytestmark = pytest.mark.requirement("TS-011")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_world() as opened:
        yield opened


@pytest.fixture
async def without_model() -> AsyncIterator[World]:
    async with open_world(model=False) as opened:
        yield opened


async def test_a_server_that_appears_is_found(world: World) -> None:
    world.use("files")
    world.servers.put("files", *FILES)
    await world.settled()
    assert world.found == ["read_file", "write_file"]
    world.use("files", "mail")
    world.servers.put("mail", *MAIL)
    await world.settled()
    assert (await world.names("send a letter"))[0] == "send_mail"


async def test_a_server_that_has_just_answered_is_searched(world: World) -> None:
    world.use("files")
    world.servers.put("files", *FILES)
    await world.settled()
    world.use("files", "mail")
    world.servers.put("mail", *MAIL)
    assert "send_mail" in await world.names("send a letter")


async def test_a_changed_server_is_found_with_its_new_tools(world: World) -> None:
    world.use("files")
    world.servers.put("files", *FILES)
    await world.settled()
    world.servers.put("files", FILES[0], tool("files", "copy_file", "Copy a file"))
    await world.search.until_names("read_file", "copy_file")


async def test_a_server_that_fails_is_not_found_and_the_others_are(world: World) -> None:
    world.use("files", "mail")
    world.servers.put("files", *FILES)
    world.servers.put("mail", *MAIL)
    await world.settled()
    world.servers.fall("files")
    await world.search.until_names("send_mail")
    world.servers.put("files", *FILES)
    await world.search.until_names("send_mail", "read_file", "write_file")


async def test_a_server_that_leaves_the_config_leaves_the_index(world: World) -> None:
    world.use("files", "mail")
    world.servers.put("files", *FILES)
    world.servers.put("mail", *MAIL)
    await world.settled()
    world.use("mail")
    await world.search.until_names("send_mail")


async def test_a_silent_server_does_not_delay_the_others() -> None:
    async with open_world(begin=lambda world: world.use("files", "mute")) as world:
        with pytest.raises(NotReady):
            await world.gateway.search(LocalQuery("file"))
        world.servers.put("files", *FILES)
        await world.search.until(lambda search: search.index.model_is_used)
        answer = await world.gateway.search(LocalQuery("read a file"))
        assert (answer.hits[0].item.name, answer.semantic) == ("read_file", True)


async def test_with_no_servers_at_all_a_search_is_answered(world: World) -> None:
    world.use()
    await world.settled()
    assert (await world.gateway.search(LocalQuery("file"))).hits == ()


@pytest.mark.requirement("TS-006")
async def test_keyword_search_answers_until_the_model_is_loaded(without_model: World) -> None:
    world = without_model
    world.use("files")
    world.servers.put("files", *FILES)
    await world.search.until_names("read_file", "write_file")
    before = await world.gateway.search(LocalQuery("read a file"))
    assert (before.hits[0].item.name, before.semantic) == ("read_file", False)
    assert before.hint == "keyword search only: the embedding model is still loading"
    world.model_may_come.set()
    await world.settled()
    after = await world.gateway.search(LocalQuery("read a file"))
    assert (after.hits[0].item.name, after.semantic, after.hint) == ("read_file", True, "")


async def test_a_literal_search_waits_for_the_model_and_reports_its_absence(
    without_model: World,
) -> None:
    world, query = without_model, LocalQuery("read a file", search_type=SearchType.SEMANTIC)
    world.use("files")
    world.servers.put("files", *FILES)
    await world.search.until_names("read_file", "write_file")
    at_once = await world.gateway.search(query)
    assert (at_once.hits[0].item.name, at_once.semantic) == ("read_file", False)
    assert at_once.hint == "keyword search only: the embedding model is still loading"
    patient = LocalGateway(world.servers, world.search, world.indexing, "hash", patience=30)
    searching = asyncio.create_task(patient.search(query))
    await asyncio.sleep(0.05)
    assert not searching.done()
    world.model_may_come.set()
    answer = await searching
    assert (answer.hits[0].item.name, answer.semantic, answer.hint) == ("read_file", True, "")


@pytest.mark.requirement("TS-006")
async def test_keyword_search_answers_and_says_why_when_the_model_fails(without_model: World) -> None:
    world = without_model
    world.model_failure = ModelNotFound("no such model", hint="give a folder")
    world.model_may_come.set()
    world.use("files")
    world.servers.put("files", *FILES)
    await world.settled()
    answer = await world.gateway.search(LocalQuery("read a file"))
    assert (answer.hits[0].item.name, answer.semantic) == ("read_file", False)
    assert answer.hint == "keyword search only: no such model (give a folder)"
    assert world.indexing.model_error is world.model_failure
    assert not (await world.gateway.health()).semantic


async def test_a_model_loaded_during_an_index_build_is_used(
    without_model: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index being built has no vectors; the next round must not treat it as if it had."""
    world, going_on = without_model, threading.Event()

    def slow(item: Item) -> Analysed:
        world.model_may_come.set()
        going_on.wait(10)
        return analyse(item)

    monkeypatch.setattr(indexing, "analyse", slow)
    world.use("files")
    world.servers.put("files", *FILES)
    await world.search.until(lambda search: search.embedder is not None)
    going_on.set()
    await world.settled()
    assert world.search.index.model_is_used
    assert world.found == ["read_file", "write_file"]


@pytest.mark.requirement("TS-007")
async def test_only_changed_tools_are_embedded_again(world: World) -> None:
    world.use("files", "mail")
    world.servers.put("files", *FILES)
    world.servers.put("mail", *MAIL)
    await world.settled()
    assert len(world.embedder.items_embedded) == 3
    world.servers.put("files", FILES[0], tool("files", "write_file", "Write other text"))
    await world.settled()
    assert world.embedder.items_embedded[3:] == ["write file. Write other text"]


async def test_embedding_resumes_after_a_change(world: World) -> None:
    world.use("many", "mail")
    world.servers.put("mail")
    world.servers.put("many")
    await world.settled()
    world.embedder.permits = asyncio.Semaphore(0)
    world.servers.put("many", *tools("many", 3 * BATCH))
    await world.embedder.waiting.wait()
    world.servers.put("mail", *MAIL)
    world.embedder.permits.release()
    await world.search.until(lambda search: len(search.index) == 3 * BATCH + 1)
    assert len(world.embedder.items_embedded) == BATCH, "the change goes first"
    for _ in range(3):
        world.embedder.permits.release()
    await world.settled()
    assert len(world.search.index) == 3 * BATCH + 1
    assert len(world.embedder.items_embedded) == len(set(world.embedder.items_embedded)) == 3 * BATCH + 1
    assert (await world.gateway.health()).semantic
    hit = (await world.gateway.search(LocalQuery("send a letter", threshold=0.0))).hits[0]
    assert (hit.item.name, hit.parts.semantic is not None) == ("send_mail", True)


async def test_one_tool_that_fails_to_embed_does_not_affect_the_others(world: World) -> None:
    world.embedder.refused = "Poison"
    world.use("many")
    world.servers.put("many", *tools("many", BATCH), tool("many", "bad", "Poison"))
    await world.settled()
    assert len(world.embedder.items_embedded) == world.indexing.embedded == BATCH
    answer = await world.gateway.search(LocalQuery("bad poison", limit=100, threshold=0.0))
    assert answer.semantic
    assert [hit.item.name for hit in answer.hits if hit.parts.semantic is None] == ["bad"]


@pytest.mark.requirement("TS-006")
async def test_keyword_search_answers_and_says_why_when_embedding_fails(world: World) -> None:
    world.embedder.failure = EmbedderUnavailable("the model ran out of memory")
    world.use("files")
    world.servers.put("files", *FILES)
    await world.settled()
    answer = await world.gateway.search(LocalQuery("read a file"))
    assert (answer.hits[0].item.name, answer.semantic) == ("read_file", False)
    assert answer.hint == "keyword search only: the model ran out of memory"
    world.embedder.failure = None
    world.servers.put("files", *FILES)
    await world.settled()
    assert (await world.gateway.search(LocalQuery("read a file"))).hint == ""


async def test_a_cached_offer_is_used_until_the_server_answers() -> None:
    old = Offer("files", (tool("files", "old_file", "As it was last time"),))
    async with open_world(begin=lambda world: world.use("files", "mail", remembered=[old])) as world:
        await world.indexing.has_begun()
        assert world.found == ["old_file"]
        world.servers.put("mail", *MAIL)
        await world.search.until_names("old_file", "send_mail")
        world.servers.put("files", *FILES)
        await world.search.until_names("read_file", "write_file", "send_mail")
        world.servers.fall("files")
        await world.search.until_names("send_mail")


async def test_a_cached_offer_is_dropped_when_the_server_fails() -> None:
    old = Offer("files", FILES)
    async with open_world(begin=lambda world: world.use("files", remembered=[old])) as world:
        await world.indexing.has_begun()
        assert world.found == ["read_file", "write_file"]
        world.servers.fall("files", "it is broken")
        await world.search.until_names()


async def test_a_cached_offer_stays_while_its_server_is_not_started(world: World) -> None:
    world.indexing.use([], [Offer("files", FILES)])
    await world.settled()
    assert world.found == ["read_file", "write_file"]


async def test_progress_reports_servers_and_embedding(world: World) -> None:
    world.use("files", "mute")
    world.servers.put("files", *FILES)
    await world.search.until(lambda search: search.index.model_is_used)
    reported = {(progress.task, progress.done, progress.total) for progress in world.progress}
    assert ("starting servers", 1, 2) in reported
    assert ("embedding tools", 2, 2) in reported
