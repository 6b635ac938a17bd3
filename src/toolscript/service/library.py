"""Opens the library: to read it for whoever serves, to write it for whoever ingests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.errors import SetupError
from toolscript.ports import LibraryReader, LibraryWriter
from toolscript.settings import Settings


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[LibraryReader | None]:
    """None where the installation has no library. One that is down is found out by whoever asks it."""
    url = settings.mongo_url.get_secret_value()
    if not url:
        yield None
        return
    # Imported here: whoever has no library needs no driver for it.
    from toolscript.adapters import mongo

    async with mongo.connect(url, settings.mongo_database) as library:
        yield mongo.MongoLibraryReader(library)


@asynccontextmanager
async def open_writer(settings: Settings) -> AsyncIterator[LibraryWriter]:
    url = settings.mongo_writer_url.get_secret_value() or settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to write to",
            hint="set TOOLSCRIPT_MONGO_WRITER_URL to the address of a MongoDB, with a user that may write there",
        )
    from toolscript.adapters import mongo

    async with mongo.connect(url, settings.mongo_database) as library:
        yield mongo.MongoLibraryWriter(library)
