"""Who is let in over HTTP, as whom, and how often: a small app with one route of each kind."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import APIRouter, Body, Depends, FastAPI
from fastapi.responses import StreamingResponse

from tests.support.bad_tokens import Issuer, Shown, an_issuer, bad_requests
from toolscript.core.auth.keys import KeyFile, KeyRing
from toolscript.core.auth.model import UNLIMITED, Plan, Principal, Scope, Tenant, TokenVerifier
from toolscript.core.auth.tokens import JwtVerifier, TokenRules
from toolscript.core.errors import PlanExceeded, Unavailable
from toolscript.core.web.auth import PrincipalHere, authenticator_of, require_principal
from toolscript.core.web.errors import install_error_handlers
from toolscript.testing import MemoryRequestBudget, MemoryTokenVerifier

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
    async def who(principal: PrincipalHere) -> dict[str, str]:
        return {"tenant": principal.tenant.name, "plan": principal.plan.name}

    @router.get("/stream")
    async def stream(principal: PrincipalHere) -> StreamingResponse:
        return StreamingResponse(iter([principal.tenant.name]))

    @router.post("/body")
    async def body(principal: PrincipalHere, tenant: Annotated[int, Body(embed=True)]) -> dict[str, str]:
        return {"tenant": principal.tenant.name}

    @router.get("/refused")
    async def refused(principal: PrincipalHere) -> None:
        raise PlanExceeded(f"too much for {principal.tenant}")


@asynccontextmanager
async def client(
    verifier: TokenVerifier | None = None, clock: Clock | None = None, **options: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app_of(verifier, clock or Clock(), **options))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tools.example") as one:
        yield one


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def ask(one: httpx2.AsyncClient, method: str, path: str, shown: Shown) -> httpx2.Response:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in shown.headers]
    json = {"tenant": 7} if method == "POST" else None
    return await one.request(method, path, headers=headers, params=dict(shown.params), json=json)


async def test_a_caller_is_who_its_token_says(tmp_path: Path) -> None:
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "jwks.json")))
    verifier = JwtVerifier(keys, TokenRules(Issuer.name, Issuer.audience), {}, SMALL)
    async with client(verifier) as one:
        for tenant in ("acme", "other"):
            answer = await one.get("/who", headers=bearer(issuer.token(tenant)))
            assert answer.json() == {"tenant": tenant, "plan": "small"}


async def test_every_route_refuses_every_bad_token_and_every_misplaced_one(tmp_path: Path) -> None:
    issuer = an_issuer()
    keys = KeyRing(KeyFile(issuer.write(tmp_path / "jwks.json")))
    verifier = JwtVerifier(keys, TokenRules(Issuer.name, Issuer.audience), {}, UNLIMITED)
    let_in = []
    async with client(verifier) as one:
        for kind, shown in bad_requests(issuer).items():
            for method, path in ROUTES:
                answer = await ask(one, method, path, shown)
                if answer.status_code != 401:
                    let_in.append((kind, path, answer.status_code))
                assert answer.headers["www-authenticate"].startswith("Bearer"), kind
                assert answer.json()["error"]["code"] == "UNAUTHORIZED", kind
                assert not any(value[-40:] in answer.text for _, value in shown.headers if len(value) > 80), kind
        good = await ask(one, "GET", "/who", Shown([("Authorization", f"Bearer {issuer.token()}")]))
    assert (let_in, good.status_code) == ([], 200)


@pytest.mark.parametrize("shown", ["bearer of-acme", "BEARER of-acme", "Bearer  of-acme "])
async def test_the_kind_of_a_token_may_be_written_in_any_case(shown: str) -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as one:
        assert (await one.get("/who", headers={"Authorization": shown})).json()["tenant"] == "acme"


@pytest.mark.parametrize(
    ("headers", "challenge"),
    [
        ([], "Bearer"),
        ([("Authorization", "Basic x")], "Bearer"),
        ([("Authorization", "Bearer x")], 'Bearer error="invalid_token"'),
        ([("Authorization", "Bearer of-acme")] * 2, 'Bearer error="invalid_request"'),
    ],
)
async def test_a_refusal_says_what_kind_of_token_is_wanted_and_what_was_wrong(
    headers: list[tuple[str, str]], challenge: str
) -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as one:
        refused = await one.get("/who", headers=headers)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, challenge)
    assert refused.json()["error"]["details"]["hint"]


@pytest.mark.parametrize("headers", [{}, bearer("of-acme"), {"X-Debug-Bypass-Auth": "1"}])
async def test_where_no_keys_are_set_nobody_is_let_in_and_the_hint_names_the_setting(
    headers: Mapping[str, str],
) -> None:
    async with client(None) as one:
        refused = await one.get("/who", headers=headers)
    assert refused.status_code == 401
    assert "TOOLSCRIPT_JWT_KEYS" in refused.json()["error"]["details"]["hint"]


async def test_when_keys_cannot_be_had_that_is_not_the_callers_fault() -> None:
    class NoKeys:
        async def verify(self, token: str) -> Principal:
            raise Unavailable("no keys")

    async with client(NoKeys()) as one:
        answer = await one.get("/who", headers=bearer("x"))
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
async def test_where_it_is_allowed_a_header_stands_for_a_token(headers: Mapping[str, str], tenant: str) -> None:
    for verifier in (None, MemoryTokenVerifier(TOKENS)):
        async with client(verifier, debug_bypass=True, default_plan=Plan("default")) as one:
            answer = await one.get("/who", headers=headers)
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
async def test_the_bypass_is_asked_for_in_one_way_only(headers: list[tuple[str, str]]) -> None:
    async with client(MemoryTokenVerifier(TOKENS), debug_bypass=True) as one:
        assert (await one.get("/who", headers=headers)).status_code == 401


async def test_where_the_bypass_is_not_allowed_its_headers_change_nothing() -> None:
    debug = {"X-Debug-Bypass-Auth": "1", "X-Debug-Tenant": "other"}
    async with client(MemoryTokenVerifier(TOKENS)) as one:
        assert (await one.get("/who", headers=debug)).status_code == 401
        assert (await one.get("/who", headers={**debug, **bearer("of-acme")})).json()["tenant"] == "acme"


async def test_nothing_else_of_a_request_names_a_tenant() -> None:
    others = {"X-Tenant-Id": "other", "X-Tenant": "other", "Tenant": "other", "Cookie": "tenant_id=other"}
    async with client(MemoryTokenVerifier(TOKENS), debug_bypass=True) as one:
        answer = await one.get("/who?tenant=other&tenant_id=other", headers={**others, **bearer("of-acme")})
    assert answer.json()["tenant"] == "acme"


@pytest.mark.requirement("DOC-007")
@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_answer_says_what_is_left_whatever_becomes_of_the_request(method: str, path: str) -> None:
    clock = Clock()
    clock.at += 18
    async with client(MemoryTokenVerifier(TOKENS), clock) as one:
        body = {"tenant": "no number"} if method == "POST" else None
        answer = await one.request(method, path, headers=bearer("of-small"), json=body)
        unlimited = await one.request(method, path, headers=bearer("of-acme"), json=body)
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
async def test_who_has_asked_as_often_as_it_may_is_told_when_to_come_back() -> None:
    clock = Clock()
    async with client(MemoryTokenVerifier(TOKENS), clock) as one:
        given = [await one.get("/who", headers=bearer("of-small")) for _ in range(3)]
        clock.at += 50
        refused = await one.get("/who", headers=bearer("of-small"))
        assert (await one.get("/who", headers=bearer("of-acme"))).status_code == 200
        clock.at += 10
        again = await one.get("/who", headers=bearer("of-small"))
    assert [one.headers["ratelimit-remaining"] for one in given] == ["2", "1", "0"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert (refused.headers["retry-after"], refused.headers["ratelimit-reset"]) == ("10", "10")
    assert refused.headers["ratelimit-remaining"] == "0"
    assert (again.status_code, again.headers["ratelimit-remaining"]) == (200, "2")


@pytest.mark.requirement("DOC-007")
async def test_who_is_not_let_in_spends_nothing() -> None:
    async with client(MemoryTokenVerifier(TOKENS)) as one:
        for _ in range(5):
            refused = await one.get("/who", headers=bearer("of-smalL"))
            assert RATE & refused.headers.keys() == set()
        assert (await one.get("/who", headers=bearer("of-small"))).headers["ratelimit-remaining"] == "2"
