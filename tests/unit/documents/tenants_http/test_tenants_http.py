"""/api/v1/tenants: for administrators, with the counts that `toolscript tenants list` shows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import httpx2
import pytest

from tests.unit.documents.http.builders import Json, Parts
from tests.unit.documents.tenants_http.filled import documents
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.cursors import encode_cursor
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantList
from toolscript.server.app import ApiAccess, create_app
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryTenants
from toolscript.testing.documents import MemoryTenantPlaces

pytestmark = pytest.mark.requirement("DOC-004")

TENANTS = "/api/v1/tenants"
ADMIN = "token-of-the-administrator"


def client_of(routes: DocumentRoutes | None, token: str = ADMIN) -> httpx2.AsyncClient:
    nothing = cast("Any", None)
    access = ApiAccess(AdminAccess(ADMIN))
    app = create_app(nothing, nothing, nothing, nothing, nothing, access=access, documents=routes)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://testserver", headers=headers)


@pytest.fixture
async def routes() -> DocumentRoutes:
    """Documents of three tenants."""
    index, tenants = MemoryDocuments(DocumentCard(HashEmbedder().model)), MemoryTenants()
    service = DocumentService(HashEmbedder(), index, tenants)
    for name, count in (("ann", 4), ("bob", 1), ("Zoe", 2)):
        await service.put(Principal(Tenant(name)), documents(count))
    return replace(Parts(index).routes(), tenants=TenantList(index, MemoryTenantPlaces(index), tenants))


@pytest.fixture
async def admin(routes: DocumentRoutes) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(routes) as client:
        yield client


async def test_tenants_are_listed_by_name_with_their_counts(admin: httpx2.AsyncClient) -> None:
    first: Json = (await admin.get(TENANTS, params={"limit": 2})).json()
    assert [(row["name"], row["document_count"]) for row in first["results"]] == [("Zoe", 2), ("ann", 4)]
    ann = first["results"][1]
    assert ann.keys() == {
        "name",
        "document_count",
        "document_count_is",
        "chunk_count",
        "has_own_shard",
        "created_at",
    }
    assert (ann["document_count_is"], ann["has_own_shard"]) == ("exact", False)
    assert ann["chunk_count"] > 4
    last = (await admin.get(TENANTS, params={"cursor": first["next_cursor"]})).json()
    assert ([row["name"] for row in last["results"]], last["next_cursor"]) == (["bob"], None)
    assert (await admin.get(f"{TENANTS}/ann")).json() == ann


async def test_an_unknown_tenant_is_404_and_an_impossible_name_422(admin: httpx2.AsyncClient) -> None:
    for name, status in (("an", 404), ("anna", 404), ("-ann", 422), ("a%00b", 422), ("x" * 129, 422)):
        assert (await admin.get(f"{TENANTS}/{name}")).status_code == status, name
    for key in ("a\0", "\ud800", "a b", 7):
        answer = await admin.get(TENANTS, params={"cursor": encode_cursor(cast("Any", key))})
        assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (422, "cursor")


@pytest.mark.parametrize("token", ["", "token-of-acme", "wrong"])
async def test_only_administrators_see_tenants(routes: DocumentRoutes, token: str) -> None:
    async with client_of(routes, token) as client:
        for path in (TENANTS, f"{TENANTS}/ann", f"{TENANTS}/none"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
            assert "ann" not in answer.text


async def test_without_documents_there_is_a_hint_for_the_operator() -> None:
    async with client_of(None) as client:
        answer = await client.get(TENANTS)
    assert answer.status_code == 503
    assert "TOOLSCRIPT_JWT_KEYS" in answer.json()["error"]["details"]["hint"]
