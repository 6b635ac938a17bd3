"""Shared by tests of sync and changes over HTTP: an app on the real engines, and servers that it may sync."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from tests.conftest import Installation
from toolscript.core.items import StoredItem
from toolscript.server.serve import open_app
from toolscript.server.stores import Stores, open_stores

JOBS = "/api/v1/jobs"
CHANGES = "/api/v1/changes"
SOON = 60.0
POLL_SECONDS = 0.02

Json = dict[str, Any]


@dataclass(frozen=True)
class Service:
    app: FastAPI
    client: httpx2.AsyncClient
    stores: Stores

    async def ask(self, method: str, path: str, expected: int = 200, json: object = None, **query: Any) -> Any:
        answer = await self.client.request(method, path, json=json, params=query)
        assert answer.status_code == expected, answer.text
        return answer.json()

    async def refused(self, method: str, path: str, expected: int, json: object = None, **query: Any) -> Any:
        """Return the error, after a check of its shape."""
        answer = await self.ask(method, path, expected, json, **query)
        assert answer.keys() == {"error"}
        assert answer["error"].keys() == {"code", "message", "details"}
        return answer["error"]

    async def synced(self, body: object, state: str = "done") -> Json:
        """Run a sync; return the finished job."""
        accepted = await self.ask("POST", JOBS, 202, body)
        job = await self.until_over(accepted["id"])
        assert job["state"] == state, job
        return job

    async def until_over(self, job_id: int) -> Json:
        async with asyncio.timeout(SOON):
            while True:
                job = await self.ask("GET", f"{JOBS}/{job_id}")
                if job["state"] not in ("queued", "running"):
                    return dict(job)
                await asyncio.sleep(POLL_SECONDS)

    async def items(self, source: str) -> dict[str, StoredItem]:
        """Return the active items of one source, by name."""
        async with self.stores.pool.connection() as conn:
            statement = "SELECT id FROM mcp.items WHERE source = %s AND is_active"
            rows = await (await conn.execute(statement, (source,))).fetchall()
        stored_items = await self.stores.catalog.items([int(str(row[0])) for row in rows])
        return {stored.item.name: stored for stored in stored_items}


@asynccontextmanager
async def serving(installation: Installation, **more: str) -> AsyncIterator[Service]:
    # Without a token, local clients may write in the development environment only.
    environment = {**installation.environment, "TOOLSCRIPT_ENVIRONMENT": "development", **more}
    settings = Installation(environment).settings
    async with open_stores(settings) as stores, open_app(settings) as app:
        transport = httpx2.ASGITransport(app)
        client = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=SOON)
        async with client:
            yield Service(app, client, stores)


def write_config(path: Path, servers: Mapping[str, object]) -> str:
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return str(path)


def described(name: str, description: str = "", **more: object) -> Json:
    return {"server": "pushed", "name": name, "description": description, **more}


def catalog(source: str, *items: Json, **more: object) -> Json:
    return {"source": source, "items": list(items), **more}
