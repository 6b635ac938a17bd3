"""Who is let in where nobody has to be known, with which scopes, and how often one address may ask."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request

from toolscript.core.auth.model import Anonymous, Plan, Principal, Scope, Tenant
from toolscript.core.web.auth import (
    address_of,
    authenticator_of,
    optional_authenticator_of,
    require_identity,
    require_principal,
)
from toolscript.core.web.errors import install_error_handlers
from toolscript.testing import MemoryRequestBudget, MemoryTokenVerifier

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
    async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as one:
        yield one


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
async def test_each_route_is_for_who_has_its_scope(token: str, statuses: dict[str, int]) -> None:
    async with client() as one:
        told = {path: (await one.get(path, headers=shows(token))).status_code for path in statuses}
    assert told == statuses


async def test_a_token_that_does_not_go_so_far_is_told_what_it_lacks() -> None:
    async with client() as one:
        refused = await one.get("/write", headers=shows("reads"))
        stranger = await one.get("/tools")
    assert refused.json()["error"] == {
        "code": "FORBIDDEN",
        "message": "the token does not have the scope documents:write",
        "details": {
            "error": "insufficient_scope",
            "scope": "documents:write",
            "hint": "get one from its issuer that has",
        },
    }
    challenge = 'Bearer error="insufficient_scope", scope="documents:write"'
    assert refused.headers["www-authenticate"] == challenge
    assert stranger.headers["www-authenticate"] == 'Bearer scope="tools:read"'


@pytest.mark.parametrize("shown", ["Bearer nobody", "Basic of-acme", "Bearer", "of-acme", ""])
async def test_who_shows_something_that_is_no_token_is_not_taken_for_the_public(shown: str) -> None:
    async with client() as one:
        assert (await one.get("/knowledge", headers={"Authorization": shown})).status_code == 401
        twice = [("Authorization", "Bearer of-acme")] * 2
        assert (await one.get("/knowledge", headers=twice)).status_code == 401


async def test_where_the_public_may_do_nothing_everybody_needs_a_token() -> None:
    async with client(public_scopes=frozenset()) as one:
        refused = await one.get("/knowledge")
        assert (refused.status_code, refused.json()["error"]["message"]) == (401, "a token is needed")
        assert (await one.get("/knowledge", headers=shows("of-acme"))).status_code == 200


async def test_one_address_is_counted_apart_from_others_and_from_tokens() -> None:
    app = app_of(public_requests_per_minute=2)

    async def ask(address: str, token: str = "") -> httpx2.Response:
        transport = httpx2.ASGITransport(app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as one:
            return await one.get("/knowledge", headers=shows(token))

    given = [await ask("203.0.113.7") for _ in range(3)]
    assert [one.status_code for one in given] == [200, 200, 429]
    assert given[2].json()["error"]["message"] == (
        "the plan `public` allows 2 requests a minute, and they are spent"
    )
    assert int(given[2].headers["retry-after"]) == int(given[2].headers["ratelimit-reset"])
    assert (await ask("203.0.113.8")).status_code == 200
    assert (await ask("203.0.113.7", "of-acme")).status_code == 200
    assert [(await ask("203.0.113.7", "small")).status_code for _ in range(2)] == [200, 429]
    assert [(await ask("2001:db8::1")).status_code, (await ask("2001:db8::ffff:1")).status_code] == [200, 200]
    assert (await ask("2001:db8::2")).status_code == 429


async def test_without_a_limit_nobody_is_counted() -> None:
    async with client() as one:
        answers = [await one.get("/knowledge") for _ in range(5)]
    assert {one.status_code for one in answers} == {200}
    assert "ratelimit-limit" not in answers[0].headers


async def test_where_it_is_allowed_a_header_stands_for_a_token() -> None:
    debug = {"X-Debug-Bypass-Auth": "1"}
    async with client(debug_bypass=True) as one:
        assert (await one.get("/tools", headers=debug)).status_code == 200
        assert (await one.get("/tools")).status_code == 401
    async with client() as one:
        assert (await one.get("/tools", headers=debug)).status_code == 401


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
def test_an_address_stands_for_its_household(host: str | None, address: str) -> None:
    scope = {"type": "http", "client": None if host is None else (host, 1)}
    assert address_of(Request(scope)) == address


def test_no_tenant_has_the_name_that_a_stranger_is_counted_by() -> None:
    with pytest.raises(Exception, match="the tenant's name is none"):
        Tenant(Anonymous("203.0.113.7").name)
