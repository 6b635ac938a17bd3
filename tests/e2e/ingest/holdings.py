"""Contents of a library and its indexes as comparable values, without times and versions of points."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

from pymongo import AsyncMongoClient
from qdrant_client import grpc as wire

from tests.conftest import drop_collections
from tests.contracts.library_builders import drop_database, writer_url
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.core.qdrant.values import from_value
from toolscript.core.settings.service import Settings
from toolscript.knowledge.ingest.indexes import parse_mark

PAGE = 500
Holdings = dict[str, dict[str, Any]]


@contextmanager
def named_library(engines: Settings) -> Iterator[dict[str, str]]:
    """Return the environment of a separate library."""
    name = f"test_{uuid4().hex[:12]}"
    yield {
        "TOOLSCRIPT_MONGO_URL": engines.mongo_url.get_secret_value(),
        "TOOLSCRIPT_MONGO_WRITER_URL": writer_url(engines),
        "TOOLSCRIPT_MONGO_DATABASE": name,
        "TOOLSCRIPT_QDRANT_URL": engines.qdrant_url,
        "TOOLSCRIPT_QDRANT_GRPC_PORT": str(engines.qdrant_grpc_port),
        "TOOLSCRIPT_QDRANT_CHUNKS_ALIAS": f"{name}__chunks",
        "TOOLSCRIPT_QDRANT_EXTRACTIONS_ALIAS": f"{name}__extractions",
    }


@asynccontextmanager
async def opened(environment: dict[str, str]) -> AsyncIterator[tuple[Any, Qdrant]]:
    port = int(environment["TOOLSCRIPT_QDRANT_GRPC_PORT"])
    async with (
        AsyncMongoClient[dict[str, Any]](environment["TOOLSCRIPT_MONGO_WRITER_URL"]) as client,
        open_qdrant(environment["TOOLSCRIPT_QDRANT_URL"], port) as engine,
    ):
        yield client[environment["TOOLSCRIPT_MONGO_DATABASE"]], engine


async def forget(environment: dict[str, str]) -> None:
    async with opened(environment) as (database, engine):
        await drop_database(database.client, database.name)
        await drop_collections(engine, environment["TOOLSCRIPT_MONGO_DATABASE"])


async def holdings(environment: dict[str, str]) -> Holdings:
    async with opened(environment) as (database, engine):
        return {
            "sources": await _documents(database, "sources", "ingested_at"),
            "chunks": await _documents(database, "chunks"),
            "extractions": await _documents(database, "extractions", "extracted_at"),
            "chunk points": await _points(engine, environment["TOOLSCRIPT_QDRANT_CHUNKS_ALIAS"]),
            "extraction points": await _points(engine, environment["TOOLSCRIPT_QDRANT_EXTRACTIONS_ALIAS"]),
        }


async def _documents(database: Any, collection: str, *unlike: str) -> dict[str, Any]:
    result = {}
    async for item in database[collection].find({}):
        if "indexed" in item:
            mark = parse_mark(item["indexed"])
            item["indexed"] = (mark.chunk, mark.extractions)
        result[str(item.pop("_id"))] = {name: value for name, value in item.items() if name not in unlike}
    return result


async def _points(engine: Qdrant, alias: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    offset: wire.PointId | None = None
    while True:
        page = await engine.points.Scroll(
            wire.ScrollPoints(
                collection_name=alias,
                limit=PAGE,
                offset=offset,
                with_payload=wire.WithPayloadSelector(enable=True),
                with_vectors=wire.WithVectorsSelector(enable=True),
            )
        )
        result |= {f"{point.id.num:016x}": _point(point) for point in page.result}
        if not page.HasField("next_page_offset"):
            return result
        offset = page.next_page_offset


def _point(point: Any) -> tuple[object, ...]:
    fields = {name: from_value(value) for name, value in point.payload.items() if name != "version"}
    vectors = point.vectors.vectors.vectors
    words = vectors["words"].sparse
    terms = sorted(zip(words.indices, words.values, strict=True))
    return fields, tuple(vectors["dense"].dense.data), tuple(terms)


def differences(one: Holdings, other: Holdings) -> list[str]:
    result = []
    for kind in one:
        for id_ in sorted({*one[kind], *other[kind]}):
            if id_ not in one[kind]:
                result.append(f"{kind} {id_}: missing")
            elif id_ not in other[kind]:
                result.append(f"{kind} {id_}: too many: {str(one[kind][id_])[:200]}")
            elif one[kind][id_] != other[kind][id_]:
                result.append(
                    f"{kind} {id_}: {str(one[kind][id_])[:300]} instead of {str(other[kind][id_])[:300]}"
                )
    return result
