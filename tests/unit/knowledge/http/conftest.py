"""The routes of a small library that anonymous clients may read."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from fastapi import FastAPI

from tests.doubles import MemoryTokenVerifier
from tests.unit.documents.http.builders import Client, client_of
from tests.unit.knowledge.search.builders import Shelf, open_shelf
from tests.unit.knowledge.search.conftest import filled
from toolscript.core.auth.model import Principal, Scope, Tenant
from toolscript.core.web.auth import optional_authenticator_of
from toolscript.knowledge.http.routes import KnowledgeRoutes
from toolscript.server.app import ApiAccess, create_app
from toolscript.testing import MemoryIndexes
from toolscript.testing.auth import MemoryRequestBudget

NARROW = Principal(Tenant("acme"), scopes=frozenset({"documents:read"}))
READER = Principal(Tenant("acme"), scopes=frozenset({"knowledge:read"}))


@pytest.fixture
async def memory_shelf() -> Shelf:
    two = MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False)
    return await filled(await open_shelf(*two))


def app_of(
    shelf: Shelf | None,
    *,
    public: frozenset[Scope] = frozenset(Scope),
    a_minute: int = 0,
    hosts: tuple[str, ...] | None = None,
) -> FastAPI:
    verifier = MemoryTokenVerifier({"narrow": NARROW, "reader": READER})
    budget = MemoryRequestBudget(lambda: 30.0)
    identity = optional_authenticator_of(
        verifier, budget, public_scopes=public, public_requests_per_minute=a_minute
    )
    nothing = cast("Any", None)
    routes = KnowledgeRoutes(shelf.search if shelf else None, identity)
    readers = None if Scope.TOOLS_READ in public else identity
    access = ApiAccess(hosts=hosts)
    return create_app(
        *(nothing, nothing, nothing, nothing, nothing), knowledge=routes, catalog_readers=readers, access=access
    )


@pytest.fixture
async def api(memory_shelf: Shelf) -> AsyncIterator[Client]:
    async with client_of(app_of(memory_shelf), "") as client:
        yield client
