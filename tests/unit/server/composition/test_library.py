"""A library has one URL for reading and one for writing."""

import uuid

import pytest
from pydantic import SecretStr
from pymongo import AsyncMongoClient

from tests.contracts.library_builders import MINUTE, RUN, a_source, drop_database, writer_url
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.knowledge.mongo.connection import Document
from toolscript.server.library_stores import open_reader, open_reader_and_writer

pytestmark = pytest.mark.requirement("KN-004")

UNREADABLE = SecretStr("no address")


async def test_the_reader_finds_what_the_writer_wrote_in_the_configured_database(
    engines: Settings,
) -> None:
    settings = engines.model_copy(update={"mongo_database": f"test_{uuid.uuid4().hex[:12]}"})
    async with open_reader_and_writer(settings) as (_, writer), open_reader(settings) as reader:
        assert await writer.claim(a_source(), RUN, MINUTE)
        assert await writer.finish(a_source(), RUN, "hash", "recipe")
        assert await reader.sources([a_source().id]) == {a_source().id: a_source()}
    async with open_reader(engines) as elsewhere:
        assert await elsewhere.sources([a_source().id]) == {}
    async with AsyncMongoClient[Document](writer_url(engines)) as client:
        await drop_database(client, settings.mongo_database)


async def test_reader_and_writer_use_their_own_url_and_the_writer_falls_back_to_that_of_the_reader(
    engines: Settings,
) -> None:
    reading = engines.model_copy(update={"mongo_writer_url": UNREADABLE})
    async with open_reader(reading) as reader:
        await reader.ready()
    with pytest.raises(SetupError, match="cannot be read"):
        async with open_reader_and_writer(reading):
            pass
    writing = Settings(mongo_url=SecretStr(writer_url(engines)), mongo_writer_url=SecretStr(""))
    async with open_reader_and_writer(writing) as (_, writer):
        assert await writer.known(["/nowhere"]) == {}


async def test_without_a_url_the_error_names_the_setting() -> None:
    nowhere = Settings(mongo_url=SecretStr(""), mongo_writer_url=SecretStr(""))
    with pytest.raises(SetupError) as no_reader:
        async with open_reader(nowhere):
            pass
    with pytest.raises(SetupError) as no_writer:
        async with open_reader_and_writer(nowhere):
            pass
    assert "TOOLSCRIPT_MONGO_URL" in no_reader.value.hint
    assert "TOOLSCRIPT_MONGO_WRITER_URL" in no_writer.value.hint
