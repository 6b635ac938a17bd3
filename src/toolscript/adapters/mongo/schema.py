"""What a library needs to be fast, and whether we may touch it."""

from pymongo import ASCENDING, DESCENDING, IndexModel

from toolscript.adapters.mongo.connection import MongoLibrary
from toolscript.adapters.mongo.documents import require_readable

_ID = ("_id", ASCENDING)

SOURCE_INDEXES = (
    [("path", ASCENDING)],
    [("type", ASCENDING), _ID],
    [("topics", ASCENDING), _ID],
    [("schema_version", DESCENDING)],
)
CHUNK_INDEXES = ([("source_id", ASCENDING), ("number", ASCENDING), _ID],)
EXTRACTION_INDEXES = ([("chunk_id", ASCENDING), _ID],)


async def make_indexes(library: MongoLibrary) -> None:
    with library.asked():
        await library.sources.create_indexes([IndexModel(keys) for keys in SOURCE_INDEXES])
        await library.chunks.create_indexes([IndexModel(keys) for keys in CHUNK_INDEXES])
        await library.extractions.create_indexes([IndexModel(keys) for keys in EXTRACTION_INDEXES])


async def require_known_version(library: MongoLibrary) -> None:
    """One look is enough: whoever writes a library writes its sources. What it holds beside is seen when read."""
    with library.asked():
        newest = await library.sources.find_one(
            {}, {"schema_version": 1}, sort=[("schema_version", DESCENDING)], max_time_ms=library.most_ms
        )
    require_readable(newest or {})
