"""A service with some data of every kind, so that random requests often hit existing data."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from tests.conftest import Installation, fresh_installation
from tests.e2e import commands
from tests.support.token_issuer import an_issuer
from tests.unit.conftest import fill
from tests.unit.tools.skills_http.builders import SKILLS, suggest
from tests.unit.tools.skills_http.builders import described as described_skill
from tests.unit.tools.sources_http.builders import catalog, described, serving, write_config
from toolscript.core.settings.service import Settings
from toolscript.knowledge.ingest.indexes import chunk_entry, points_of, prepare_indexes
from toolscript.knowledge.model.library import Chunk, Source
from toolscript.server.ingest import open_library_resources

SKILL_IDS = ("calendar", "files", "mail", "weather")
MANY = 40
DOCUMENT_IDS = tuple(f"document-{number}" for number in range(MANY))
# Sources that requests may delete: they hold nothing else that requests refer to.
ITEM_SOURCES = ("leaving", "leaving/too", "left alone")
SOURCE_ID, CHUNK_ID = "5" * 24, "c" * 24
A_DAY = 24 * 3600
ADMIN, TENANT = "of-the-administrator", "acme"
# Servers are excluded before anything starts: random requests reach no MCP server.
SERVERS = {"unset": {"command": "nothing", "env": {"KEY": "${NOBODY_SET_THIS}"}}}


class Furnished(NamedTuple):
    """`token` belongs to a tenant with documents, `admin` to an administrator."""

    url: str
    token: str
    admin: str = ADMIN


@contextmanager
def furnished_service(engines: Settings, database: str, model: str) -> Iterator[Furnished]:
    """`toolscript serve` as a process."""
    issuer = an_issuer()
    with fresh_installation(engines, database, model) as fresh, tempfile.TemporaryDirectory() as folder:
        asyncio.run(furnish(fresh))
        servers = write_config(Path(folder) / "servers.json", SERVERS)
        more = {
            "TOOLSCRIPT_SYNC_CONFIG": servers,
            "TOOLSCRIPT_HOLD_CHANGES": "true",
            "TOOLSCRIPT_ENVIRONMENT": "development",
            "TOOLSCRIPT_ADMIN_TOKEN": ADMIN,
            "TOOLSCRIPT_JWT_KEYS": str(issuer.write(Path(folder) / "keys.json")),
            "TOOLSCRIPT_JWT_ISSUER": issuer.name,
        }
        with commands.serving({**fresh.environment, **more}) as url:
            furnished = Furnished(url, issuer.token(TENANT, exp=int(time.time()) + A_DAY))
            put_documents(furnished)
            yield furnished


def put_documents(service: Furnished) -> None:
    body = {"documents": [{"id": document_id, "text": f"About {document_id}."} for document_id in DOCUMENT_IDS]}
    headers = {"authorization": f"Bearer {service.token}"}
    answer = httpx2.put(
        f"{service.url}/documents", json=body, headers=headers, trust_env=False, verify=False, timeout=60
    )
    assert answer.json()["counts"]["created"] == MANY, answer.text


async def with_library(settings: Settings) -> None:
    """Create a library with one source of one chunk."""
    source = Source(SOURCE_ID, "book", "Bees", "/bees", chunk_count=1)
    chunk = Chunk(CHUNK_ID, SOURCE_ID, 0, "About bees.")
    async with open_library_resources(settings) as parts:
        await parts.writer.prepare()
        await prepare_indexes(parts.indexes, parts.card, parts.reader)
        await parts.writer.claim(source, "run", 60)
        await parts.writer.put_chunks([chunk])
        chunks, _ = await parts.indexes.open(parts.card)
        points = await points_of(parts.embedder, [chunk_entry(source.title, chunk)], version=1)
        await chunks.put([*points.values()])
        await parts.writer.finish(source, "run", "hash", "recipe")


async def furnish(installation: Installation) -> None:
    """Create tools, skills with tools, pending suggestions and changes, rules, and a library."""
    await fill(installation.settings)
    await with_library(installation.settings)
    async with serving(installation, TOOLSCRIPT_HOLD_CHANGES="true") as service:
        for skill in SKILL_IDS:
            await service.ask("POST", SKILLS, 201, described_skill(skill))
        for message in ("Reads a file.", "Reads a file, and more."):
            await service.synced(catalog("changing", *(described(f"read_{n}", message) for n in range(MANY))))
        for name in ITEM_SOURCES:
            await service.synced(catalog(name, described("read")))
        for number in range(1, MANY):
            rule = {"kind": "never", "words": f"word{number}", "tool_id": 1}
            await service.ask("POST", "/api/v1/curation", 201, rule)
        for number in range(MANY):
            await suggest(service.stores, f"Suggestion {number}", "send_mail", "summarise")
        for tool_id, skill in enumerate(SKILL_IDS, 1):
            value = {"skill_ids": [skill], "reviewer": "ada"}
            await service.ask("PUT", f"/api/v1/tools/{tool_id}/skills", 200, value)
