"""Cache files of a gateway, and the work they save at the next start."""

import json
from pathlib import Path

import pytest

from tests.unit.gateway.runtime.builders import FILES, MAIL, open_world, spec, tool
from toolscript.gateway.store.offers import OfferFile

pytestmark = pytest.mark.requirement("TS-007")


async def test_a_second_start_embeds_nothing(tmp_path: Path) -> None:
    for embedded in (3, 0):
        async with open_world(tmp_path) as world:
            world.use("files", "mail")
            world.servers.put("files", *FILES)
            world.servers.put("mail", *MAIL)
            await world.settled()
            assert world.indexing.embedded == len(world.embedder.items_embedded) == embedded
            assert world.search.index.model_is_used
            assert (await world.names("read a file"))[0] == "read_file"


async def test_a_second_start_embeds_only_what_changed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.use("files")
        world.servers.put("files", *FILES)
        await world.settled()
    async with open_world(tmp_path) as world:
        world.use("files")
        world.servers.put("files", FILES[0], tool("files", "write_file", "Something new"))
        await world.settled()
        assert world.embedder.items_embedded == ["write file. Something new"]


async def test_adding_or_removing_a_server_embeds_no_other_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.use("files")
        world.servers.put("files", *FILES)
        await world.settled()
        world.use("files", "mail")
        world.servers.put("mail", *MAIL)
        await world.settled()
        assert len(world.embedder.items_embedded) == 3
    assert len(list((tmp_path / "embeddings").glob("*.json"))) == 2


async def test_without_a_cache_adding_a_server_embeds_no_other_again() -> None:
    async with open_world(None) as world:
        world.use("files")
        world.servers.put("files", *FILES)
        await world.settled()
        world.use("files", "mail")
        world.servers.put("mail", *MAIL)
        await world.settled()
        assert len(world.embedder.items_embedded) == 3


async def test_a_server_that_restarts_is_not_embedded_again(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.use("files", "mail")
        world.servers.put("files", *FILES)
        world.servers.put("mail", *MAIL)
        await world.settled()
        world.servers.fall("mail")
        await world.settled()
        world.servers.put("mail", *MAIL)
        await world.settled()
        assert len(world.embedder.items_embedded) == 3
        assert world.search.index.model_is_used


async def test_vectors_of_removed_tools_are_dropped(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.use("files")
        world.servers.put("files", *FILES)
        await world.settled()
        world.servers.put("files", FILES[0], tool("files", "new", "New"))
        await world.settled()
    (file,) = (tmp_path / "embeddings").glob("*.json")
    assert sorted(json.loads(file.read_text("utf-8"))["tools"]) == ["files__new", "files__read_file"]


async def test_offers_are_cached_once_every_server_has_answered(tmp_path: Path) -> None:
    specs = [spec("files"), spec("mail")]
    async with open_world(tmp_path) as world:
        world.use("files", "mail")
        world.servers.put("files", *FILES)
        await world.search.until_names("read_file", "write_file")
        assert OfferFile(tmp_path / "tools", specs).recall(60).offers == ()
        world.servers.fall("mail", "no such command")
        await world.settled()
    remembered = OfferFile(tmp_path / "tools", specs).recall(60)
    assert [offer.items for offer in remembered.offers] == [FILES]


async def test_an_unwritable_cache_is_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    async with open_world(tmp_path / "cache") as world:
        world.use("files")
        world.servers.put("files", *FILES)
        await world.settled()
        assert (await world.names("read a file"))[0] == "read_file"
        assert world.search.index.model_is_used
