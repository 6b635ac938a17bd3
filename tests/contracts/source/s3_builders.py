"""Fixtures of S3: an installation whose tools a scripted language model has classified."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from qdrant_client import QdrantClient

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.e2e.gateway.machines import mcp_server
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.tools.classify.models import answer, items_in
from tests.unit.tools.search_http.builders import Searching
from tests.unit.tools.sources_http.builders import serving, write_config
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import IndexWriter, open_index_writer

CALENDAR, MAIL, FILES = "calendar_management", "communication", "file_operations"
SKILLS, SUGGESTIONS = "/api/v1/skills", "/api/v1/suggestions"
EXAMPLE = "schedule a meeting with John tomorrow"
SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}, "starts_at": {"type": "string"}}}

CATEGORIES: list[dict[str, Any]] = [
    {
        "id": CALENDAR,
        "name": "Calendar Management",
        "description": "Tools for managing calendars, events, scheduling, and appointments",
        "parent_domain": "work",
        "keywords": ["calendar", "event", "schedule", "meeting", "appointment", "reminder"],
        "examples": ["create_event", "list_events", "delete_event", "update_event"],
    },
    {"id": MAIL, "name": "Communication", "description": "Tools for sending messages and invitations to people"},
    {
        "id": FILES,
        "name": "File Operations",
        "description": "Tools for reading, writing, and managing files",
        "keywords": ["file", "read", "write", "upload", "download", "delete"],
        "examples": ["read_file", "write_file", "list_files", "upload_file"],
    },
]

ITEMS: list[dict[str, Any]] = [
    {
        "name": "create_calendar_event",
        "description": "Create a calendar event or schedule a meeting at a given time",
        "input_schema": SCHEMA,
    },
    {"name": "send_meeting_invite", "description": "Send a meeting invitation to people by email"},
    {"name": "read_file", "description": "Read the contents of a file on disk"},
    {"name": "write_file", "description": "Write contents to a file on disk"},
    {"name": "juggle_clubs", "description": "Juggle clubs and torches in a circus ring"},
    {"name": "plan_day", "kind": "prompt", "description": "Plan a day with the meetings of a calendar"},
    {"name": "calendar://today", "kind": "resource", "description": "The events of today in the calendar"},
]

# Replies of the language model by tool: too many skills, low confidence, and unknown skills.
SAID: dict[str, list[tuple[str, float]]] = {
    "create_calendar_event": [(MAIL, 0.6), (CALENDAR, 0.95), (FILES, 0.3), ("nowhere", 0.99)],
    "send_meeting_invite": [(MAIL, 0.9), (CALENDAR, 0.7)],
    "read_file": [(FILES, 0.8)],
    "write_file": [(FILES, 0.5)],
    "plan_day": [(CALENDAR, 0.85)],
    "calendar://today": [(CALENDAR, 0.75)],
    "add": [(FILES, 0.55)],
}
CIRCUS = {"name": "Circus", "description": "Tools for acrobats and jugglers."}


def sorter(request: dict[str, Any]) -> object:
    answers = []
    for item in items_in(request):
        message = SAID.get(item["name"], [])
        rows = [{"skill_id": skill, "reason": "by its name", "confidence": sure} for skill, sure in message]
        answers.append(answer(item["item"], *rows, suggested=None if message else CIRCUS))
    return {"items": answers}


@dataclass(frozen=True)
class World(Searching):
    installation: Installation
    endpoint: TextEndpoint
    writer: IndexWriter
    engine: QdrantClient

    async def work(self) -> None:
        await self.writer.worker(silent).drain()

    async def item(self, name: str) -> dict[str, Any]:
        listed = await self.service.ask("GET", "/api/v1/tools", limit=100)
        return next(dict(result) for result in listed["results"] if result["name"] == name)

    async def skills_of(self, name: str) -> dict[str, Any]:
        number = (await self.item(name))["id"]
        return dict(await self.service.ask("GET", f"/api/v1/tools/{number}/skills"))

    @property
    def collections(self) -> dict[str, str]:
        """Return the collections by the name in the source document."""
        mine = self.installation.environment
        return {
            "mcp_skills": mine["TOOLSCRIPT_QDRANT_SKILLS_ALIAS"],
            "mcp_unified_search": mine["TOOLSCRIPT_QDRANT_ALIAS"],
        }

    def points(self, collection: str) -> dict[str, tuple[dict[str, Any], "np.ndarray[Any, Any]"]]:
        """Return payload and vector of each point, by name."""
        name = self.collections[collection]
        result, _ = self.engine.scroll(name, limit=100, with_payload=True, with_vectors=["dense"])
        read: dict[str, Any] = {str((item.payload or {})["name"]): item for item in result}
        return {name: (item.payload, np.array(item.vector["dense"])) for name, item in read.items()}

    def rows(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        with psycopg.connect(self.installation.environment["TOOLSCRIPT_POSTGRES_URL"]) as conn:
            return conn.execute(statement.encode(), values).fetchall()


@contextmanager
def installed(engines: Settings, template: str, model_folder: str, folder: Path) -> Iterator[Installation]:
    plain = {**mcp_server("plain"), "includeTools": ["add"]}
    with (
        fresh_database(engines, template) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        fresh.environment["TOOLSCRIPT_SYNC_CONFIG"] = write_config(folder / "servers.json", {"plain": plain})
        yield fresh


@asynccontextmanager
async def world(installation: Installation) -> AsyncIterator[World]:
    settings = installation.settings
    engine = QdrantClient(url=settings.qdrant_url, grpc_port=settings.qdrant_grpc_port, prefer_grpc=True)
    with TextEndpoint(model=sorter) as endpoint, closing(engine):
        told_of = {"text_url": endpoint.url, "text_model": "m"}
        async with open_index_writer(settings.model_copy(update=told_of)) as writer:
            await writer.worker(silent).drain()
            async with serving(installation) as service:
                opened = World(service, installation, endpoint, writer, engine)
                for category in CATEGORIES:
                    await service.ask("POST", SKILLS, 201, category)
                items = [{"server": "office", **item} for item in ITEMS]
                await service.synced({"source": "office", "items": items})
                await opened.work()
                yield opened
