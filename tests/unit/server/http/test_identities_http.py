"""Optional authentication: scopes of anonymous and authenticated clients, and rate limits by address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request

from tests.doubles import MemoryTokenVerifier
from toolscript.core.auth.model import Anonymous, Plan, Principal, Scope, Tenant
from toolscript.core.web.auth import (
    address_of,
    authenticator_of,
    optional_authenticator_of,
    require_identity,
    require_principal,
)
from toolscript.core.web.errors import install_error_handlers
from toolscript.testing import MemoryRequestBudget

pytestmark = pytest.mark.requirement("KN-005")

READ, WRITE = Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE
ACME = Tenant("acme")
TOKENS = {
    "of-acme": Principal(ACME),
    "reads": Principal(ACME, scopes=frozenset({"documents:read", "openid"})),
    "has-none": Principal(ACME, scopes=frozenset()),
    "small": Principal(Tenant("small"), Plan("small", requests_per_minute=1)),
}
KNOWLEDGE = frozenset({Scope.KNOWLEDGE_READ})


def app_of(**options: Any) -> FastAPI:
    budget = MemoryRequestBudget()
    identify = optional_authenticator_of(
        MemoryTokenVerifier(TOKENS), budget, **{"public_scopes": KNOWLEDGE, **options}
    )
    authenticate = authenticator_of(MemoryTokenVerifier(TOKENS), budget)
    app = FastAPI()
    for path, checked in {
        "/knowledge": require_identity(identify, Scope.KNOWLEDGE_READ),
        "/tools": require_identity(identify, Scope.TOOLS_READ),
        "/read": require_principal(authenticate, READ),
        "/write": require_principal(authenticate, WRITE),
    }.items():
        router = APIRouter(route_class=checked)
        router.add_api_route(path, _nothing)
        app.include_router(router)
    install_error_handlers(app)
    return app


async def _nothing() -> None: ...


@asynccontextmanager
async def client(address: str = "203.0.113.7", **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app_of(**options), client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as item:
        yield item


def shows(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


@pytest.mark.parametrize(
    ("token", "statuses"),
    [
        ("", {"/knowledge": 200, "/tools": 401, "/read": 401, "/write": 401}),
        ("of-acme", {"/knowledge": 200, "/tools": 200, "/read": 200, "/write": 200}),
        ("reads", {"/knowledge": 200, "/tools": 403, "/read": 200, "/write": 403}),
        ("has-none", {"/knowledge": 200, "/tools": 403, "/read": 403, "/write": 403}),
        ("nobody", {"/knowledge": 401, "/tools": 401, "/read": 401, "/write": 401}),
    ],
)
async def test_each_route_requires_its_scope(token: str, statuses: dict[str, int]) -> None:
    async with client() as item:
        output = {path: (await item.get(path, headers=shows(token))).status_code for path in statuses}
    assert output == statuses


async def test_a_token_without_the_scope_gets_an_error_that_names_it() -> None:
    async with client() as item:
        refused = await item.get("/write", headers=shows("reads"))
        stranger = await item.get("/tools")
    assert refused.json()["error"] == {
        "code": "FORBIDDEN",
        "message": "the token does not have the scope documents:write",
        "details": {
            "error": "insufficient_scope",
            "scope": "documents:write",
            "hint": "get a token with it from the issuer",
        },
    }
    challenge = 'Bearer error="insufficient_scope", scope="documents:write"'
    assert refused.headers["www-authenticate"] == challenge
    assert stranger.headers["www-authenticate"] == 'Bearer scope="tools:read"'


@pytest.mark.parametrize("shown", ["Bearer nobody", "Basic of-acme", "Bearer", "of-acme", ""])
async def test_an_invalid_token_is_not_treated_as_anonymous(shown: str) -> None:
    async with client() as item:
        assert (await item.get("/knowledge", headers={"Authorization": shown})).status_code == 401
        twice = [("Authorization", "Bearer of-acme")] * 2
        assert (await item.get("/knowledge", headers=twice)).status_code == 401


async def test_without_public_scopes_every_client_needs_a_token() -> None:
    async with client(public_scopes=frozenset()) as item:
        refused = await item.get("/knowledge")
        assert (refused.status_code, refused.json()["error"]["message"]) == (401, "a token is needed")
        assert (await item.get("/knowledge", headers=shows("of-acme"))).status_code == 200


async def test_each_address_has_a_rate_limit_apart_from_others_and_from_tokens() -> None:
    app = app_of(public_requests_per_minute=2)

    async def ask(address: str, token: str = "") -> httpx2.Response:
        transport = httpx2.ASGITransport(app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as item:
            return await item.get("/knowledge", headers=shows(token))

    value = [await ask("203.0.113.7") for _ in range(3)]
    assert [item.status_code for item in value] == [200, 200, 429]
    assert value[2].json()["error"]["message"] == (
        "the plan `public` allows 2 requests a minute, and they are spent"
    )
    assert int(value[2].headers["retry-after"]) == int(value[2].headers["ratelimit-reset"])
    assert (await ask("203.0.113.8")).status_code == 200
    assert (await ask("203.0.113.7", "of-acme")).status_code == 200
    assert [(await ask("203.0.113.7", "small")).status_code for _ in range(2)] == [200, 429]
    assert [(await ask("2001:db8::1")).status_code, (await ask("2001:db8::ffff:1")).status_code] == [200, 200]
    assert (await ask("2001:db8::2")).status_code == 429


async def test_without_a_limit_no_request_is_counted() -> None:
    async with client() as answer:
        answers = [await answer.get("/knowledge") for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit-limit" not in answers[0].headers


async def test_with_the_debug_bypass_a_header_replaces_the_token() -> None:
    debug = {"X-Debug-Bypass-Auth": "1"}
    async with client(debug_bypass=True) as item:
        assert (await item.get("/tools", headers=debug)).status_code == 200
        assert (await item.get("/tools")).status_code == 401
    async with client() as item:
        assert (await item.get("/tools", headers=debug)).status_code == 401


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "unknown"),
        (None, "unknown"),
    ],
)
def test_ipv6_addresses_are_counted_by_network(host: str | None, address: str) -> None:
    scope = {"type": "http", "client": None if host is None else (host, 1)}
    assert address_of(Request(scope)) == address


def test_no_tenant_name_equals_the_key_of_an_anonymous_client() -> None:
    with pytest.raises(Exception, match="the tenant's name is not valid"):
        Tenant(Anonymous("203.0.113.7").name)
