"""Authentication and rate limits over HTTP: a small app with one route of each kind."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import APIRouter, Body, Depends, FastAPI
from fastapi.responses import StreamingResponse

from tests.doubles import MemoryTokenVerifier
from tests.support.bad_tokens import Issuer, Shown, an_issuer, bad_requests
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Plan, Principal, Scope, Tenant, TokenVerifier
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import PlanExceeded, Unavailable
from toolscript.core.web.auth import CurrentPrincipal, authenticator_of, require_principal
from toolscript.core.web.errors import install_error_handlers
from toolscript.testing import MemoryRequestBudget

pytestmark = pytest.mark.requirement("DOC-004")

SMALL = Plan("small", requests_per_minute=3)
TOKENS = {"of-acme": Principal(Tenant("acme")), "of-small": Principal(Tenant("small-one"), SMALL)}
ROUTES = [("GET", "/who"), ("GET", "/stream"), ("POST", "/body"), ("GET", "/refused"), ("GET", "/dependency")]
RATE = {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy", "ratelimit"}


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


def app_of(verifier: TokenVerifier | None, clock: Clock, **options: Any) -> FastAPI:
    authenticate = authenticator_of(verifier, MemoryRequestBudget(clock), **options)
    router = APIRouter(route_class=require_principal(authenticate, Scope.DOCUMENTS_READ))
    _add_routes(router)
    app = FastAPI()
    app.include_router(router)

    @app.get("/dependency")
    async def dependency(principal: Annotated[Principal, Depends(authenticate)]) -> dict[str, str]:
        return {"tenant": principal.tenant.name, "plan": principal.plan.name}

    install_error_handlers(app)
    return app


def _add_routes(router: APIRouter) -> None:
    @router.get("/who")
    async def who(principal: CurrentPrincipal) -> dict[str, str]:
        return {"tenant": principal.tenant.name, "plan": principal.plan.name}

    @router.get("/stream")
    async def stream(principal: CurrentPrincipal) -> StreamingResponse:
        return StreamingResponse(iter([principal.tenant.name]))

    @router.post("/body")
    async def body(principal: CurrentPrincipal, tenant: Annotated[int, Body(embed=True)]) -> dict[str, str]:
        return {"tenant": principal.tenant.name}

    @router.get("/refused")
    async def refused(principal: CurrentPrincipal) -> None:
        raise PlanExceeded(f"too much for {principal.tenant}")


@asynccontextmanager
async def client(
    verifier: TokenVerifier | None = None, clock: Clock | None = None, **options: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app_of(verifier, clock or Clock(), **options))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as http:
        yield http


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def ask(http: httpx2.AsyncClient, method: str, path: str, credentials: Shown) -> httpx2.Response:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in credentials.headers]
    json = {"tenant": 7} if method == "POST" else None
    return await http.request(method, path, headers=headers, params=dict(credentials.params), json=json)


async def test_the_token_determines_tenant_and_plan(tmp_path: Path) -> None:
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "jwks.json")))
    verifier = JwtVerifier(keys, TokenRules(Issuer.name, Issuer.audience), {}, SMALL)
    async with client(verifier) as http:
        for tenant in ("acme", "other"):
            answer = await http.get("/who", headers=bearer(issuer.token(tenant)))
            assert answer.json() == {"tenant": tenant, "plan": "small"}


async def test_every_route_refuses_every_bad_token_and_every_misplaced_one(tmp_path: Path) -> None:
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "jwks.json")))
    verifier = JwtVerifier(keys, TokenRules(Issuer.name, Issuer.audience), {}, UNLIMITED)
    accepted = []
    async with client(verifier) as http:
        for kind, credentials in bad_requests(issuer).items():
            for method, path in ROUTES:
                answer = await ask(http, method, path, credentials)
                if answer.status_code != 401:
                    accepted.append((kind, path, answer.status_code))
                assert answer.headers["www-authenticate"].startswith("Bearer"), kind
                assert answer.json()["error"]["code"] == "UNAUTHORIZED", kind
                assert not any(
                    value[-40:] in answer.text for _, value in credentials.headers if len(value) > 80
                ), kind
        good = await ask(http, "GET", "/who", Shown([("Authorization", f"Bearer {issuer.token()}")]))
    assert (accepted, good.status_code) == ([], 200)


@pytest.mark.parametrize("credentials", ["bearer of-acme", "BEARER of-acme", "Bearer  of-acme "])
async def test_the_kind_of_a_token_may_be_written_in_any_case(credentials: str) -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as http:
        assert (await http.get("/who", headers={"Authorization": credentials})).json()["tenant"] == "acme"


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], "Bearer"),
        ([("Authorization", "Basic x")], "Bearer"),
        ([("Authorization", "Bearer x")], 'Bearer error="invalid_token"'),
        ([("Authorization", "Bearer of-acme")] * 2, 'Bearer error="invalid_request"'),
    ],
)
async def test_a_401_has_a_challenge_with_the_error(headers: list[tuple[str, str]], challenge: str) -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as http:
        refused = await http.get("/who", headers=headers)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, challenge)
    assert refused.json()["error"]["details"]["hint"]


@pytest.mark.parametrize("headers", [{}, bearer("of-acme"), {"X-Debug-Bypass-Auth": "1"}])
async def test_without_keys_every_request_gets_401_with_a_hint_at_the_setting(
    headers: Mapping[str, str],
) -> None:
    async with client(None) as http:
        refused = await http.get("/who", headers=headers)
    assert refused.status_code == 401
    assert "TOOLSCRIPT_JWT_KEYS" in refused.json()["error"]["details"]["hint"]


async def test_missing_keys_give_503_and_not_401() -> None:
    class NoKeys:
        async def verify(self, token: str) -> Principal:
            raise Unavailable("no keys")

    async with client(NoKeys()) as http:
        answer = await http.get("/who", headers=bearer("x"))
    assert (answer.status_code, "www-authenticate" in answer.headers) == (503, False)


@pytest.mark.states("S2-076", "S2-100")
@pytest.mark.parametrize(
    ("headers", "tenant"),
    [
        ({"X-Debug-Bypass-Auth": "1"}, "debug"),
        ({"X-Debug-Bypass-Auth": "1", "X-Debug-Tenant": "acme"}, "acme"),
        ({"X-Debug-Bypass-Auth": "1", "X-Debug-Tenant": "acme", **bearer("nonsense")}, "acme"),
    ],
)
async def test_with_the_debug_bypass_a_header_replaces_the_token(headers: Mapping[str, str], tenant: str) -> None:
    for verifier in (None, MemoryTokenVerifier(TOKENS)):
        async with client(verifier, debug_bypass=True, default_plan=Plan("default")) as http:
            answer = await http.get("/who", headers=headers)
        assert answer.json() == {"tenant": tenant, "plan": "default"}


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Debug-Bypass-Auth", "true")],
        [("X-Debug-Bypass-Auth", "0")],
        [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Bypass-Auth", "1")],
        [("X-Debug-Tenant", "acme")],
        [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "a/b")],
        [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "")],
        [("X-Debug-Bypass-Auth", "1"), ("X-Debug-Tenant", "a"), ("X-Debug-Tenant", "b")],
    ],
)
async def test_the_bypass_needs_exactly_one_header_with_value_1(headers: list[tuple[str, str]]) -> None:
    async with client(MemoryTokenVerifier(TOKENS), debug_bypass=True) as http:
        assert (await http.get("/who", headers=headers)).status_code == 401


async def test_without_the_debug_bypass_its_headers_have_no_effect() -> None:
    debug = {"X-Debug-Bypass-Auth": "1", "X-Debug-Tenant": "other"}
    async with client(MemoryTokenVerifier(TOKENS)) as http:
        assert (await http.get("/who", headers=debug)).status_code == 401
        assert (await http.get("/who", headers={**debug, **bearer("of-acme")})).json()["tenant"] == "acme"


async def test_nothing_else_of_a_request_names_a_tenant() -> None:
    misleading = {"X-Tenant-Id": "other", "X-Tenant": "other", "Tenant": "other", "Cookie": "tenant_id=other"}
    async with client(MemoryTokenVerifier(TOKENS), debug_bypass=True) as http:
        answer = await http.get("/who?tenant=other&tenant_id=other", headers={**misleading, **bearer("of-acme")})
    assert answer.json()["tenant"] == "acme"


@pytest.mark.requirement("DOC-007")
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_response_has_rate_limit_headers_whatever_its_status(method: str, path: str) -> None:
    clock = Clock()
    clock.at += 18
    async with client(MemoryTokenVerifier(TOKENS), clock) as http:
        body = {"tenant": "no number"} if method == "POST" else None
        answer = await http.request(method, path, headers=bearer("of-small"), json=body)
        unlimited = await http.request(method, path, headers=bearer("of-acme"), json=body)
    assert {name: answer.headers[name] for name in RATE} == {
        "ratelimit-limit": "3",
        "ratelimit-remaining": "2",
        "ratelimit-reset": "42",
        "ratelimit-policy": '"minute";q=3;w=60',
        "ratelimit": '"minute";r=2;t=42',
    }
    assert unlimited.status_code == answer.status_code
    assert RATE & unlimited.headers.keys() == set()


@pytest.mark.requirement("DOC-007")
async def test_a_client_over_its_rate_limit_gets_429_with_retry_after() -> None:
    clock = Clock()
    async with client(MemoryTokenVerifier(TOKENS), clock) as http:
        allowed = [await http.get("/who", headers=bearer("of-small")) for _ in range(3)]
        clock.at += 50
        refused = await http.get("/who", headers=bearer("of-small"))
        assert (await http.get("/who", headers=bearer("of-acme"))).status_code == 200
        clock.at += 10
        again = await http.get("/who", headers=bearer("of-small"))
    assert [response.headers["ratelimit-remaining"] for response in allowed] == ["2", "1", "0"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert (refused.headers["retry-after"], refused.headers["ratelimit-reset"]) == ("10", "10")
    assert refused.headers["ratelimit-remaining"] == "0"
    assert (again.status_code, again.headers["ratelimit-remaining"]) == (200, "2")


@pytest.mark.requirement("DOC-007")
async def test_a_refused_request_does_not_use_the_budget() -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as http:
        for _ in range(5):
            refused = await http.get("/who", headers=bearer("of-smalL"))
            assert RATE & refused.headers.keys() == set()
        assert (await http.get("/who", headers=bearer("of-small"))).headers["ratelimit-remaining"] == "2"
