"""Qdrant loses the documents: nobody is told that there are none, and no empty index takes their place.

What is put meanwhile is refused: written into a new index, a restore would lose it.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from qdrant_client import grpc as wire

from tests.conftest import Installation, drop_collections
from tests.e2e.commands import run, run_here
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.server.serve import open_app

pytestmark = pytest.mark.requirement("OP-004", "DOC-003")

SEARCH, DOCUMENTS = "/api/v1/documents/search", "/api/v1/documents"
BEGIN_EMPTY = ("reindex", "documents", "--begin-empty")
SECONDS = 20.0


@dataclass(frozen=True)
class Service:
    """A service over HTTP, as tenant acme unless said otherwise."""

    client: httpx.AsyncClient

    async def ask(self, method: str, path: str, body: object = None, tenant: str = "acme") -> httpx.Response:
        headers = {"x-debug-bypass-auth": "1", "x-debug-tenant": tenant}
        return await self.client.request(method, path, json=body, headers=headers)

    async def put(self, *ids: str, tenant: str = "acme") -> int:
        documents = [{"id": id_, "text": f"Rotation of the key {id_}."} for id_ in ids]
        answer = await self.ask("PUT", DOCUMENTS, {"documents": documents}, tenant)
        return answer.status_code

    async def found(self, tenant: str = "acme") -> list[str]:
        answer = await self.ask("POST", SEARCH, {"query": "rotation of keys"}, tenant)
        assert answer.status_code == 200, answer.text
        return sorted(hit["id"] for hit in answer.json()["results"])

    async def is_ill(self) -> bool:
        parts: dict[str, Any] = (await self.client.get("/readyz")).json()["parts"]
        return not parts["documents"]["ok"] and "toolscript restore" in parts["documents"]["note"]

    async def requires_restore(self, tenant: str = "acme") -> None:
        """Nothing answers as if there were no documents, and nothing is written."""
        requests: list[tuple[str, str, object]] = [
            ("POST", SEARCH, {"query": "rotation of keys"}),
            ("POST", SEARCH, {"query": "rotation of keys", "limit": 1, "search_type": "keyword"}),
            ("PUT", DOCUMENTS, {"documents": [{"id": "new", "text": "Written after the loss."}]}),
            ("GET", DOCUMENTS, None),
            ("GET", f"{DOCUMENTS}/one", None),
            ("DELETE", f"{DOCUMENTS}/one", None),
        ]
        for method, path, body in requests:
            answer = await self.ask(method, path, body, tenant)
            assert answer.status_code == 503, (method, path, answer.text)
            assert "toolscript restore" in answer.text, answer.text
            assert "127.0.0.1" not in answer.text


@dataclass(frozen=True)
class World:
    installation: Installation

    @property
    def alias(self) -> str:
        return self.installation.settings.qdrant_documents_alias

    def run(self, *arguments: str, code: int = 0) -> Any:
        return run_here(self.installation.environment, *arguments, code=code)

    def serving(self, act: Callable[[Service], Awaitable[object]]) -> None:
        async def run() -> None:
            async with self.service() as service:
                await act(service)

        asyncio.run(run())

    @asynccontextmanager
    async def service(self) -> AsyncIterator[Service]:
        async with open_app(self.installation.settings) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
                yield Service(client)

    async def on_engine(self, act: Callable[[Qdrant], Awaitable[Any]]) -> Any:
        value = self.installation.settings
        async with open_qdrant(value.qdrant_url, value.qdrant_grpc_port) as connected:
            return await act(connected)

    async def lose(self) -> None:
        await self.on_engine(lambda connected: drop_collections(connected, self.alias))

    async def empty(self, tenant: str = "") -> None:
        """Remove the points, of one tenant or of all, and leave the collection."""
        own = wire.FieldCondition(key="tenant", match=wire.Match(keyword=tenant))
        where = wire.Filter(must=[wire.Condition(field=own)] if tenant else [])
        (collection,) = await self.collections()
        request = wire.DeletePoints(
            collection_name=collection, wait=True, points=wire.PointsSelector(filter=where)
        )
        await self.on_engine(lambda connected: connected.points.Delete(request))

    async def collections(self) -> list[str]:
        listed = await self.on_engine(lambda connected: connected.collections.List(wire.ListCollectionsRequest()))
        return [str(entry.name) for entry in listed.collections if entry.name.startswith(f"{self.alias}__")]

    async def has_alias(self) -> bool:
        listed = await self.on_engine(
            lambda connected: connected.collections.ListAliases(wire.ListAliasesRequest())
        )
        return any(entry.alias_name == self.alias for entry in listed.aliases)

    async def snapshot(self) -> tuple[str, bytes]:
        (collection,) = await self.collections()
        async with self._rest() as rest:
            made = (await rest.post(f"/collections/{collection}/snapshots?wait=true")).json()["result"]["name"]
            return collection, (await rest.get(f"/collections/{collection}/snapshots/{made}")).content

    async def restore(self, collection: str, snapshot: bytes) -> None:
        async with self._rest() as rest:
            path = f"/collections/{collection}/snapshots/upload?priority=snapshot&wait=true"
            (await rest.post(path, files={"snapshot": snapshot})).raise_for_status()

    def _rest(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.installation.settings.qdrant_url, timeout=60)


async def becomes(check: Callable[[], Awaitable[bool]]) -> None:
    ends_at = time.monotonic() + SECONDS
    while not await check():
        assert time.monotonic() < ends_at
        await asyncio.sleep(0.2)


@pytest.fixture
def world(installation: Installation) -> World:
    """Two tenants with documents, and an index that was never built anew."""
    allowed = {"TOOLSCRIPT_DEBUG_BYPASS_AUTH": "true", "TOOLSCRIPT_ENVIRONMENT": "development"}
    mine = World(Installation({**installation.environment, **allowed}))
    mine.run("worker", "--drain")

    async def fill(service: Service) -> None:
        assert await service.put("one", "two") == 200
        assert await service.put("three", tenant="globex") == 200

    mine.serving(fill)
    return mine


def test_a_lost_collection_is_not_replaced_by_an_empty_one_when_serve_starts(world: World) -> None:
    asyncio.run(world.lose())

    async def look(service: Service) -> None:
        assert await service.is_ill()
        await service.requires_restore()

    world.serving(look)
    assert asyncio.run(world.collections()) == []
    assert "toolscript restore" in world.run("tenants", "list", code=2).stderr
    assert "toolscript restore" in world.run("reindex", "documents", code=2).stderr
    (shown,) = [line for line in world.run("doctor", "--index").stdout.splitlines() if "documents" in line]
    assert "lost" in shown


def test_a_restored_collection_has_all_documents_and_none_was_written_in_between(world: World) -> None:
    async def lose_and_restore(service: Service) -> None:
        collection, snapshot = await world.snapshot()
        await world.lose()
        await service.requires_restore()
        await becomes(service.is_ill)
        assert await world.collections() == []
        await world.restore(collection, snapshot)
        assert await service.found() == ["one", "two"]
        assert await service.found("globex") == ["three"]
        # A snapshot does not hold the alias.
        await becomes(world.has_alias)
        assert await service.put("four") == 200
        assert await service.found() == ["four", "one", "two"]

    world.serving(lose_and_restore)
    tenants = json.loads(world.run("tenants", "list", "--json").stdout)["results"]
    assert [tenant["document_count"] for tenant in tenants] == [3, 1]


def test_a_collection_restored_before_the_start_is_found_without_its_alias(world: World) -> None:
    async def lose_and_restore() -> None:
        collection, snapshot = await world.snapshot()
        await world.lose()
        await world.restore(collection, snapshot)

    asyncio.run(lose_and_restore())
    assert "globex" in world.run("tenants", "list").stdout
    assert asyncio.run(world.has_alias())


def test_an_emptied_collection_is_not_taken_for_one_without_documents(world: World) -> None:
    async def look(service: Service) -> None:
        assert await service.found() == ["one", "two"]
        await world.empty()
        await service.requires_restore()
        await becomes(service.is_ill)

    world.serving(look)


def test_a_tenant_whose_documents_alone_are_lost_is_told_and_others_are_served(world: World) -> None:
    async def look(service: Service) -> None:
        await world.empty("acme")
        await service.requires_restore()
        assert await service.found("globex") == ["three"]
        assert await service.put("four", tenant="globex") == 200

    world.serving(look)
    world.run("tenants", "erase", "acme", "--yes")

    async def begin_again(service: Service) -> None:
        assert await service.found() == []
        assert await service.put("one") == 200
        assert await service.found() == ["one"]

    world.serving(begin_again)


def test_a_tenant_that_deleted_all_its_documents_has_lost_nothing(world: World) -> None:
    async def look(service: Service) -> None:
        for id_ in ("one", "two"):
            assert (await service.ask("DELETE", f"{DOCUMENTS}/{id_}")).status_code in (200, 204)
        assert await service.found() == []
        assert (await service.ask("DELETE", f"{DOCUMENTS}/three", tenant="globex")).status_code in (200, 204)
        assert not await service.is_ill()
        assert await service.put("one") == 200

    world.serving(look)


def test_one_command_begins_empty_on_purpose(world: World) -> None:
    assert "2 tenants" in world.run(*BEGIN_EMPTY, "--yes", code=2).stderr
    asyncio.run(world.lose())

    async def begin(service: Service) -> None:
        assert await service.is_ill()
        await asyncio.to_thread(run, world.installation.environment, *BEGIN_EMPTY, "--yes")
        await becomes(lambda: _answers(service))
        assert await service.found() == []
        assert await service.put("five") == 200
        assert await service.found() == ["five"]
        assert not await service.is_ill()

    world.serving(begin)
    assert len(asyncio.run(world.collections())) == 1


async def _answers(service: Service) -> bool:
    return (await service.ask("POST", SEARCH, {"query": "rotation of keys"})).status_code == 200
