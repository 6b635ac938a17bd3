"""Who may write, over HTTP, to a small app with one route of each kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from fastapi import APIRouter, Depends, FastAPI

from toolscript.surfaces.http.errors import install_error_handlers
from toolscript.surfaces.http.write_guard import writers_only

pytestmark = [pytest.mark.requirement("SK-010"), pytest.mark.requirement("API-003")]

TOKEN = "s3cret-of-the-house"


@asynccontextmanager
async def client(
    token: str = "", *, address: str = "127.0.0.1", host: str = "127.0.0.1"
) -> AsyncIterator[httpx2.AsyncClient]:
    router = APIRouter(dependencies=[Depends(writers_only(token))])
    router.add_api_route("/thing", lambda: {"done": True}, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    app = FastAPI()
    app.include_router(router)
    install_error_handlers(app)
    transport = httpx2.ASGITransport(app, client=(address, 123))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as one:
        yield one


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_without_a_token_this_machine_may_write(method: str) -> None:
    async with client() as one:
        assert (await one.request(method, "/thing")).status_code == 200


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.2", "2001:db8::1", "::ffff:10.0.0.7", "testclient"])
async def test_without_a_token_no_other_machine_may_write(address: str) -> None:
    async with client(address=address) as one:
        refused = await one.post("/thing")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "FORBIDDEN"
    assert "TOOLSCRIPT_ADMIN_TOKEN" in refused.json()["error"]["details"]["hint"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_has_many_addresses(address: str) -> None:
    async with client(address=address, host="localhost:8080") as one:
        assert (await one.post("/thing")).status_code == 200


async def test_everyone_may_read() -> None:
    async with client(TOKEN, address="10.0.0.7", host="tools.example") as one:
        assert (await one.get("/thing")).status_code == 200


async def test_a_name_that_was_bent_to_this_machine_is_refused() -> None:
    async with client(host="evil.example") as one:
        assert (await one.post("/thing")).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost@evil.example"])
async def test_a_page_of_another_machine_in_a_browser_on_this_one_is_refused(origin: str) -> None:
    async with client() as one:
        assert (await one.post("/thing", headers={"Origin": origin})).status_code == 403


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
async def test_what_a_proxy_hands_on_is_not_from_this_machine(header: str) -> None:
    async with client() as one:
        assert (await one.post("/thing", headers={header: "127.0.0.1"})).status_code == 403


async def test_with_the_token_any_machine_may_write_under_any_name() -> None:
    async with client(TOKEN, address="10.0.0.7", host="tools.example") as one:
        answer = await one.post("/thing", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("shown", ["", TOKEN, f"Basic {TOKEN}", "Bearer ", f"Bearer {TOKEN}x", "Bearer \xff"])
async def test_where_a_token_is_set_nothing_else_will_do(shown: str) -> None:
    async with client(TOKEN) as one:
        refused = await one.post("/thing", headers={b"Authorization": shown.encode("latin-1")})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json()["error"]["code"] == "UNAUTHORIZED"
    assert TOKEN not in refused.text
