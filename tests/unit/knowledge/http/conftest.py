"""The routes of a small library, for a public that may read it."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from fastapi import FastAPI

from tests.unit.documents.http.scenes import Client, client_of
from tests.unit.knowledge.search.conftest import filled
from tests.unit.knowledge.search.scenes import Shelf, open_shelf
from toolscript.core.auth.model import Caller, Scope, Tenant
from toolscript.core.web.auth import visitors_of
from toolscript.knowledge.http.routes import KnowledgeRoutes
from toolscript.server.app import ApiAccess, create_app
from toolscript.testing import MemoryIndexes
from toolscript.testing.auth import MemoryCallers, MemoryRequestBudget

NARROW = Caller(Tenant("acme"), scopes=frozenset({"documents:read"}))
READER = Caller(Tenant("acme"), scopes=frozenset({"knowledge:read"}))


@pytest.fixture
async def memory_shelf() -> Shelf:
    two = MemoryIndexes(engine_rarity=False), MemoryIndexes(engine_rarity=False)
    return await filled(await open_shelf(*two))


def app_of(
    shelf: Shelf | None,
    *,
    public: frozenset[Scope] = frozenset(Scope),
    a_minute: int = 0,
    hosts: tuple[str, ...] | None = None,
) -> FastAPI:
    callers = MemoryCallers({"narrow": NARROW, "reader": READER})
    budget = MemoryRequestBudget(lambda: 30.0)
    visitor = visitors_of(callers, budget, public_scopes=public, public_requests_per_minute=a_minute)
    nothing = cast("Any", None)
    routes = KnowledgeRoutes(shelf.search if shelf else None, visitor)
    readers = None if Scope.TOOLS_READ in public else visitor
    access = ApiAccess(hosts=hosts)
    return create_app(
        *(nothing, nothing, nothing, nothing, nothing), knowledge=routes, catalog_readers=readers, access=access
    )


@pytest.fixture
async def api(memory_shelf: Shelf) -> AsyncIterator[Client]:
    async with client_of(app_of(memory_shelf), "") as client:
        yield client
