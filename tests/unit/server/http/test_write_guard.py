"""Write access over HTTP, on a small app with one route of each kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from fastapi import APIRouter, Depends, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.errors import install_error_handlers
from toolscript.tools.http.access import Access, CatalogAccess

pytestmark = [
    pytest.mark.requirement("SK-010"),
    pytest.mark.requirement("API-003"),
    pytest.mark.requirement("TR-004"),
]

TOKEN = "s3cret-of-the-house"
SOCKET = "/run/toolscript.sock"
HERE, HOUSE = AdminAccess(development=True), AdminAccess(TOKEN)
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class CameTo:
    """Sets the server address of a request."""

    def __init__(self, app: ASGIApp, server: tuple[str, int | None]) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "server": self._server}, receive, send)


@asynccontextmanager
async def client(
    admin: AdminAccess,
    *,
    address: str = "127.0.0.1",
    host: str = "127.0.0.1",
    server: tuple[str, int | None] = ("127.0.0.1", 8080),
) -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI()
    levels = {"/thing": (Access.READ, Access.ADMIN), "/private": (Access.ADMIN, Access.MANAGE)}
    for path, (read, write) in levels.items():
        router = APIRouter(dependencies=[Depends(CatalogAccess(admin).check(read, write))])
        router.add_api_route(path, lambda: {"done": True}, methods=METHODS)
        app.include_router(router)
    install_error_handlers(app)
    transport = httpx2.ASGITransport(CameTo(app, server), client=(address, 123))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as item:
        yield item


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.7"])
@pytest.mark.parametrize("method", METHODS[1:])
async def test_without_a_token_writes_are_refused_with_a_hint(method: str, address: str) -> None:
    async with client(AdminAccess(), address=address, host="localhost") as item:
        refused = await item.request(method, "/thing")
        assert (await item.get("/private")).status_code == 403
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
    hint = refused.json()["error"]["details"]["hint"]
    for way in ("TOOLSCRIPT_ADMIN_TOKEN", "serve --socket", "TOOLSCRIPT_ENVIRONMENT=development"):
        assert way in hint


@pytest.mark.parametrize("method", METHODS[1:])
async def test_in_development_this_machine_may_write_without_a_token(method: str) -> None:
    async with client(HERE) as item:
        assert (await item.request(method, "/thing")).status_code == 200


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.2", "2001:db8::1", "::ffff:10.0.0.7", "testclient"])
async def test_in_development_no_other_machine_may_write(address: str) -> None:
    async with client(HERE, address=address) as item:
        refused = await item.post("/thing")
    assert refused.status_code == 403
    assert "TOOLSCRIPT_ADMIN_TOKEN" in refused.json()["error"]["details"]["hint"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_has_many_addresses(address: str) -> None:
    async with client(HERE, address=address, host="localhost:8080") as item:
        assert (await item.post("/thing")).status_code == 200


async def test_public_routes_are_readable_by_every_client() -> None:
    async with client(HOUSE, address="10.0.0.7", host="tools.example") as item:
        assert (await item.get("/thing")).status_code == 200
        assert (await item.get("/private")).status_code == 401


async def test_dns_rebinding_is_refused() -> None:
    async with client(HERE, host="evil.example") as item:
        assert (await item.post("/thing")).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost@evil.example"])
async def test_a_page_of_another_machine_in_a_browser_on_this_one_is_refused(origin: str) -> None:
    async with client(HERE) as item:
        assert (await item.post("/thing", headers={"Origin": origin})).status_code == 403


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
async def test_a_forwarded_request_is_not_local(header: str) -> None:
    async with client(HERE) as item:
        assert (await item.post("/thing", headers={header: "127.0.0.1"})).status_code == 403
    async with client(AdminAccess(socket=SOCKET), server=(SOCKET, None)) as item:
        assert (await item.post("/thing", headers={header: "127.0.0.1"})).status_code == 403


async def test_with_the_token_any_machine_may_write_under_any_name() -> None:
    async with client(HOUSE, address="10.0.0.7", host="tools.example") as item:
        answer = await item.post("/thing", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("admin", [HOUSE, AdminAccess(TOKEN, development=True)])
@pytest.mark.parametrize("shown", ["", TOKEN, f"Basic {TOKEN}", "Bearer ", f"Bearer {TOKEN}x", "Bearer \xff"])
async def test_with_a_token_configured_nothing_else_grants_access(admin: AdminAccess, shown: str) -> None:
    async with client(admin) as item:
        refused = await item.post("/thing", headers={b"Authorization": shown.encode("latin-1")})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json()["error"]["code"] == "UNAUTHORIZED"
    assert TOKEN not in refused.text


@pytest.mark.parametrize("token", ["", TOKEN])
async def test_a_client_of_the_unix_socket_may_write(token: str) -> None:
    async with client(AdminAccess(token, socket=SOCKET), server=(SOCKET, None)) as item:
        assert (await item.post("/thing")).status_code == 200
        assert (await item.get("/private")).status_code == 200


@pytest.mark.parametrize(
    ("socket", "server"), [("", ("", None)), (SOCKET, (SOCKET, 80)), (SOCKET, ("/run/another.sock", None))]
)
async def test_a_request_to_another_address_did_not_use_the_socket(
    socket: str, server: tuple[str, int | None]
) -> None:
    async with client(AdminAccess(socket=socket), server=server) as item:
        assert (await item.post("/thing")).status_code == 403
