"""Opens the library: to read it for whoever serves, to write it for whoever ingests.

One that is down is found out by whoever asks it first.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.adapters import mongo
from toolscript.errors import SetupError
from toolscript.ports import LibraryReader, LibraryWriter
from toolscript.settings.service import Settings


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[LibraryReader]:
    url = settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to read",
            hint="set TOOLSCRIPT_MONGO_URL to the address of a MongoDB, with a user that may read there",
        )
    async with mongo.connect(url, settings.mongo_database) as library:
        yield mongo.MongoLibraryReader(library)


@asynccontextmanager
async def open_both(settings: Settings) -> AsyncIterator[tuple[LibraryReader, LibraryWriter]]:
    """Whoever writes looks at what is there, by the same way."""
    async with mongo.connect(writer_url(settings), settings.mongo_database) as library:
        yield mongo.MongoLibraryReader(library), mongo.MongoLibraryWriter(library)


def writer_url(settings: Settings) -> str:
    url = settings.mongo_writer_url.get_secret_value() or settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to write to",
            hint="set TOOLSCRIPT_MONGO_WRITER_URL to the address of a MongoDB, with a user that may write there",
        )
    return url
