"""Serving is read-only: the server rejects writes of its user, and the adapter sends none."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from pymongo import AsyncMongoClient, DeleteOne, IndexModel, InsertOne, ReplaceOne, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from tests.contracts.library_builders import MINUTE, RUN, a_chunk, a_source, an_extraction
from tests.engines.mongo.conftest import Place
from toolscript.core.errors import SetupError
from toolscript.knowledge.mongo.connection import Document, open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter
from toolscript.knowledge.ports import LibraryReader, LibraryWriter

pytestmark = pytest.mark.requirement("KN-004")

NOT_AUTHORIZED = 13
READS = {"find", "getMore", "killCursors", "ping"}
# Commands of the connection itself: login and logout.
CONNECTING = {"saslStart", "saslContinue", "endSessions"}

Refused = Callable[[AsyncMongoClient[Document], AsyncCollection[Document]], Awaitable[object]]

WRITES: dict[str, Refused] = {
    "insert": lambda _, docs: docs.insert_one({"new": 1}),
    "insert many": lambda _, docs: docs.insert_many([{"new": 1}, {"new": 2}]),
    "update": lambda _, docs: docs.update_one({}, {"$set": {"title": "changed"}}),
    "update many": lambda _, docs: docs.update_many({}, [{"$set": {"title": "changed"}}]),
    "upsert": lambda _, docs: docs.update_one({"_id": "new"}, {"$set": {"a": 1}}, upsert=True),
    "replace": lambda _, docs: docs.replace_one({}, {"title": "changed"}),
    "delete": lambda _, docs: docs.delete_one({}),
    "delete many": lambda _, docs: docs.delete_many({}),
    "bulk": lambda _, docs: docs.bulk_write(
        [InsertOne({"new": 1}), UpdateOne({}, {"$set": {"a": 1}}), ReplaceOne({}, {}), DeleteOne({})],
        ordered=False,
    ),
    "find and update": lambda _, docs: docs.find_one_and_update({}, {"$set": {"title": "changed"}}),
    "find and replace": lambda _, docs: docs.find_one_and_replace({}, {"title": "changed"}),
    "find and delete": lambda _, docs: docs.find_one_and_delete({}),
    "drop": lambda _, docs: docs.database.command("drop", docs.name),
    "drop database": lambda client, docs: client.drop_database(docs.database.name),
    "create index": lambda _, docs: docs.create_indexes([IndexModel("title")]),
    "drop indexes": lambda _, docs: docs.database.command("dropIndexes", docs.name, index="*"),
    "create collection": lambda _, docs: docs.database.command("create", "made"),
    "create view": lambda _, docs: docs.database.command("create", "view", viewOn=docs.name, pipeline=[]),
    "change collection": lambda _, docs: docs.database.command("collMod", docs.name, validator={}),
    "rename collection": lambda _, docs: docs.rename("renamed"),
    "aggregate out": lambda _, docs: docs.aggregate([{"$match": {}}, {"$out": "made"}]),
    "aggregate out to another": lambda _, docs: docs.aggregate([{"$out": {"db": "other", "coll": "made"}}]),
    "aggregate merge": lambda _, docs: docs.aggregate([{"$match": {}}, {"$merge": {"into": "made"}}]),
    "aggregate merge into itself": lambda _, docs: docs.aggregate([{"$set": {"a": 1}}, {"$merge": docs.name}]),
    "create user": lambda client, _: client["admin"].command("createUser", "new", pwd="secret", roles=["root"]),
    "create user here": lambda _, docs: docs.database.command("createUser", "new", pwd="secret", roles=[]),
    "drop user": lambda client, _: client["admin"].command("dropUser", "toolscript_writer"),
    "change own roles": lambda client, _: client["admin"].command(
        "updateUser", "toolscript_reader", roles=["root"]
    ),
    "grant role": lambda client, _: client["admin"].command(
        "grantRolesToUser", "toolscript_reader", roles=["readWriteAnyDatabase"]
    ),
    "create role": lambda client, _: client["admin"].command(
        "createRole", "new", privileges=[], roles=["readWriteAnyDatabase"]
    ),
}


@asynccontextmanager
async def filled(place: Place) -> AsyncIterator[MongoLibraryWriter]:
    async with open_mongo(place.writer_url, place.database) as library:
        writer = MongoLibraryWriter(library)
        await writer.prepare()
        assert await writer.claim(a_source(), RUN, MINUTE)
        await writer.put_chunks([a_chunk(0)])
        await writer.put_extractions("recipe", {a_chunk(0).id: [an_extraction(a_chunk(0))]})
        assert await writer.finish(a_source(), RUN, "hash", "recipe")
        yield writer


async def everything(place: Place) -> dict[str, tuple[list[Document], object]]:
    """Return documents and indexes by collection."""
    database = place.writing[place.database]
    return {
        name: (await database[name].find().to_list(), await database[name].index_information())
        for name in await database.list_collection_names()
    }


@pytest.fixture
async def as_reader(place: Place) -> AsyncIterator[AsyncMongoClient[Document]]:
    assert place.reader_url != place.writer_url, "the server runs without users: stop the engines and start them"
    async with AsyncMongoClient[Document](place.reader_url) as client:
        yield client


async def test_the_server_rejects_every_kind_of_write_of_the_read_only_user(
    place: Place, as_reader: AsyncMongoClient[Document]
) -> None:
    async with filled(place):
        before = await everything(place)
        assert {name: len(documents) for name, (documents, _) in before.items()} == {
            "sources": 1,
            "chunks": 1,
            "extractions": 1,
        }
        codes = {}
        for name, write in WRITES.items():
            with pytest.raises(OperationFailure) as refused:
                await write(as_reader, as_reader[place.database]["sources"])
            codes[name] = refused.value.code
        assert codes == dict.fromkeys(WRITES, NOT_AUTHORIZED)
        assert await everything(place) == before


async def test_the_server_refuses_to_write_into_several_collections_at_once(
    place: Place, as_reader: AsyncMongoClient[Document]
) -> None:
    if "secantusVersion" in await place.writing.server_info():
        pytest.skip("SecantusDB asks for no role for the command `bulkWrite`; MongoDB does")
    with pytest.raises(OperationFailure) as refused:
        await as_reader.bulk_write([InsertOne({"new": 1}, namespace=f"{place.database}.sources")])
    assert refused.value.code == NOT_AUTHORIZED


async def test_a_writer_with_the_read_only_user_names_the_user_it_needs(
    place: Place, as_reader: AsyncMongoClient[Document]
) -> None:
    async with filled(place), open_mongo(place.reader_url, place.database) as library:
        before = await everything(place)
        writer, chunk = MongoLibraryWriter(library), a_chunk(1)
        attempts = {
            "prepare": writer.prepare(),
            "claim": writer.claim(a_source(), RUN, MINUTE),
            "put_chunks": writer.put_chunks([chunk]),
            "mark_indexed": writer.mark_indexed({chunk.id: "point"}),
            "put_extractions": writer.put_extractions("recipe", {chunk.id: [an_extraction(chunk)]}),
            "remove_chunks": writer.remove_chunks([a_chunk(0).id]),
            "finish": writer.finish(a_source(), RUN, "hash", "recipe"),
            "release": writer.release(a_source().id, RUN),
            "remove_source": writer.remove_source(a_source().id),
        }
        for attempt in attempts.values():
            with pytest.raises(SetupError, match="not authorized") as refused:
                await attempt
            assert "`readWrite`" in refused.value.hint
            assert "TOOLSCRIPT_MONGO_WRITER_URL" in refused.value.hint
        assert {*attempts} | READING_OF_A_WRITER == methods(LibraryWriter)
        assert await everything(place) == before


async def test_all_that_a_reader_sends_are_commands_that_read(place: Place) -> None:
    sent = _Commands()
    async with filled(place), open_mongo(place.reader_url, place.database, listeners=[sent]) as library:
        reader = MongoLibraryReader(library)
        chunk, source = a_chunk(0), a_source()
        await reader.ready()
        answers: dict[str, object] = {
            "sources": await reader.sources([source.id]),
            "chunks": await reader.chunks([chunk.id]),
            "extractions": await reader.extractions([an_extraction(chunk).id]),
            "source_page": await reader.source_page("", 10, ["book"], ["tea"]),
            "passage": await reader.passage(source.id, 0, 9),
        }
    assert {"ready", *answers} == methods(LibraryReader)
    assert answers["sources"] == {source.id: source}
    assert answers["chunks"] == {chunk.id: chunk}
    assert answers["passage"] == [chunk]
    assert {"find"} <= sent.names - CONNECTING <= READS


async def test_a_batch_is_one_find_of_the_fields_that_are_needed(place: Place) -> None:
    sent = _Commands()
    many = [a_chunk(number) for number in range(300)]
    async with filled(place) as writer:
        await writer.put_chunks(many)
        async with open_mongo(place.reader_url, place.database, listeners=[sent]) as library:
            assert len(await MongoLibraryReader(library).chunks([item.id for item in many])) == len(many)
    (only,) = [item for item in sent.commands if item.command_name not in CONNECTING]
    assert only.command_name == "find"
    assert {"indexed", "extracted"}.isdisjoint(only.command["projection"])


async def test_the_server_gets_the_time_limit_of_a_query(place: Place) -> None:
    sent = _Commands()
    async with (
        filled(place),
        open_mongo(place.reader_url, place.database, listeners=[sent], answer_seconds=3) as library,
    ):
        reader, chunk = MongoLibraryReader(library), a_chunk(0)
        await reader.chunks([chunk.id])
        await reader.passage(chunk.source_id, 0, 5)
        await reader.source_page("", 5)
        await reader.ready()
    assert {event.command.get("maxTimeMS") for event in sent.commands if event.command_name == "find"} == {2_400}


async def test_the_server_ends_a_search_before_the_driver_takes_it_for_lost(place: Place) -> None:
    async with open_mongo(f"{place.reader_url}&socketTimeoutMS=60000", place.database) as library:
        assert library.max_ms == 48_000


@pytest.mark.states("S4-055")
def test_a_reader_has_no_method_that_writes() -> None:
    assert methods(MongoLibraryReader) == methods(LibraryReader)
    assert methods(MongoLibraryReader).isdisjoint(methods(LibraryWriter))
    assert methods(MongoLibraryWriter) == methods(LibraryWriter)


READING_OF_A_WRITER = {"known", "known_under", "marks", "extractions_of"}


def methods(of: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


class _Commands(CommandListener):
    def __init__(self) -> None:
        self.commands: list[CommandStartedEvent] = []

    @property
    def names(self) -> set[str]:
        return {event.command_name for event in self.commands}

    def started(self, event: CommandStartedEvent) -> None:
        self.commands.append(event)

    def succeeded(self, event: CommandSucceededEvent) -> None: ...
    def failed(self, event: CommandFailedEvent) -> None: ...
