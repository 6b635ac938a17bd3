"""Access: only host names of this machine, no foreign web pages, and only clients with the token."""

import pytest
from starlette.applications import Starlette

from tests.unit.gateway.http.requests import HOST, ask
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from tests.unit.gateway.runtime.serving import open_app
from toolscript.gateway.http import create_gateway_app

pytestmark = pytest.mark.requirement("TS-008")

TOKEN = "s3cret token/+="
LOOPBACK = ["127.0.0.1", "localhost", "LocalHost", "[::1]", "127.0.0.1:7355", "localhost:1", "[::1]:7355"]
STRANGERS = [
    *("evil.example", "evil.example:7355", "127.0.0.1.evil.example", "localhost.evil.example", "evil-localhost"),
    *("127.0.0.1@evil.example", "localhost:80@evil.example", "user:pass@localhost", "evil.example/127.0.0.1"),
    *(
        "",
        " ",
        "127.0.0.1, evil.example",
        "localhost evil.example",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:123456",
    ),
    *("::1", "[::1", "[::1]x", "[::2]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433", "127.0.0.2"),
    *("localhost.", "localhost\t", "127.0.0.1#", "127.0.0.1?x", "127.0.0.1\\@evil", "[fe80::1%25lo]"),
]


@pytest.fixture
def app() -> Starlette:
    return open_app(GatewayDouble())


@pytest.fixture
def locked() -> Starlette:
    return open_app(GatewayDouble(), token=TOKEN)


@pytest.mark.parametrize("host", LOOPBACK)
async def test_a_name_of_this_machine_is_answered(app: Starlette, host: str) -> None:
    assert (await ask(app, "/health", ("host", host), host=False)).status == 200


async def test_any_other_name_is_refused(app: Starlette, subtests: pytest.Subtests) -> None:
    """A page can point its own DNS name to this machine; the Host header still has that name."""
    for host in STRANGERS:
        with subtests.test(host=host):
            reply = await ask(app, "/health", ("host", host), host=False)
            assert (reply.status, reply.error["code"], reply.error["details"]) == (
                403,
                "FORBIDDEN",
                {"header": "Host"},
            )
            assert reply.headers["x-request-id"]


async def test_no_host_or_two_of_them_are_refused(app: Starlette) -> None:
    assert (await ask(app, "/health", host=False)).status == 403
    assert (await ask(app, "/health", HOST)).status == 403
    assert (await ask(app, "/health", ("host", "evil.example"))).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:7355", "localhost:7355", "[::1]:7355"])
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
async def test_a_page_of_the_gateways_own_address_must_send_the_token(scheme: str, host: str) -> None:
    """Another user may listen on the same port of another loopback address, and a browser may mix up the two."""
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token=TOKEN, is_same_person=lambda *_: True)
    origin, header = ("origin", f"{scheme}://{host}"), ("authorization", f"Bearer {TOKEN}")
    by_browser = ("sec-fetch-site", "same-origin")
    assert (await ask(app, "/health", origin, by_browser)).status == 401
    assert (await ask(app, "/health", by_browser)).status == 401
    assert (await ask(app, "/health", origin, by_browser, header)).status == 200
    assert (await ask(app, "/health", origin)).status == 200
    assert (await ask(app, "/health")).status == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "localhost:3000", "127.0.0.1:73550", "[::1]:80"])
async def test_a_page_of_another_port_of_this_machine_is_refused(app: Starlette, host: str) -> None:
    """A page that a developer serves there may come from any author."""
    for method, path in (("GET", "/search?q=x"), ("POST", "/tools/files__read_file"), ("POST", "/mcp")):
        reply = await ask(app, path, ("origin", f"http://{host}"), method=method)
        assert (reply.status, reply.error["details"]) == (403, {"header": "Origin"})


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin"])
async def test_the_sec_fetch_site_header_of_a_browser_is_trusted(app: Starlette, site: str) -> None:
    """An image or a form sends no Origin with a GET, but browsers always send Sec-Fetch-Site."""
    reply = await ask(app, "/search?q=x", ("sec-fetch-site", site))
    assert (reply.status, reply.error["details"]) == (403, {"header": "Sec-Fetch-Site"})
    for own in ("same-origin", "none"):
        assert (await ask(app, "/livez", ("sec-fetch-site", own))).status == 200


ORIGINS_ELSEWHERE: list[str] = [
    "null",
    "",
    "localhost",
    "127.0.0.1",
    "//localhost",
    "file://",
    "http://",
    "http://[",
    *(f"http://{host}" for host in STRANGERS if host.strip() and not host.endswith((":", "\t"))),
    "http://evil.example\\@localhost",
    "http://localhost/path@evil.example",
    "http://localhost http://evil.example",
]


async def test_a_page_of_another_machine_is_refused(app: Starlette, subtests: pytest.Subtests) -> None:
    for origin in ORIGINS_ELSEWHERE:
        with subtests.test(origin=origin):
            for method, path in (("GET", "/health"), ("POST", "/tools/files__read_file"), ("GET", "/livez")):
                reply = await ask(app, path, ("origin", origin), method=method)
                assert (reply.status, reply.error["details"]) == (403, {"header": "Origin"})


async def test_every_origin_header_must_be_the_gateways_own(app: Starlette) -> None:
    fine = ("origin", "http://localhost:7355")
    assert (await ask(app, "/livez", fine, fine)).status == 200
    assert (await ask(app, "/livez", fine, ("origin", "http://evil.example"))).status == 403


async def test_the_answer_has_no_cors_headers(app: Starlette) -> None:
    reply = await ask(app, "/health", ("origin", "http://localhost:7355"))
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
async def test_a_client_with_the_token_is_answered(locked: Starlette, header: str) -> None:
    assert (await ask(locked, "/health", ("authorization", header))).status == 200


NOT_THE_TOKEN: list[str | None] = [
    None,
    "",
    "Bearer",
    "Bearer ",
    TOKEN,
    f"Basic {TOKEN}",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN.upper()}",
    "Bearer üÿ",
    f"Bearer{TOKEN}",
]


GUARDED = ["/health", "/search?q=x", "/servers", "/tools", "/runtime/tools.ts", "/nowhere"]


async def test_a_client_without_the_token_gets_401(locked: Starlette, subtests: pytest.Subtests) -> None:
    for header in NOT_THE_TOKEN:
        for path in GUARDED:
            with subtests.test(header=header, path=path):
                reply = await ask(locked, path, *([("authorization", header)] if header is not None else []))
                assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")
                assert reply.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in reply.body.decode()


async def test_the_liveness_route_needs_no_token(locked: Starlette) -> None:
    assert (await ask(locked, "/livez")).status == 200
    assert (await ask(locked, "/livez", ("host", "evil.example"), host=False)).status == 403
    assert (await ask(locked, "/livez/../health")).status == 401


async def test_a_call_without_the_token_reaches_no_tool() -> None:
    double = GatewayDouble()
    app = open_app(double, token=TOKEN)
    assert (await ask(app, "/tools/files__read_file", method="POST", body=b"{}")).status == 401
    assert double.calls == []


async def test_the_gateways_user_needs_no_token_and_other_users_get_401() -> None:
    connections: list[tuple[tuple[str, int], tuple[str, int]]] = []

    def same_person(client: tuple[str, int], server: tuple[str, int]) -> bool:
        connections.append((client, server))
        return len(connections) == 1

    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token=TOKEN, is_same_person=same_person)
    assert (await ask(app, "/health")).status == 200
    refused = await ask(app, "/health")
    assert refused.status == 401
    assert "toolscript gateway env" in refused.error["details"]["hint"]
    assert "config connect" in refused.error["details"]["hint"]
    assert connections == [(("127.0.0.1", 1), ("127.0.0.1", 7355))] * 2
    assert (await ask(app, "/health", ("authorization", f"Bearer {TOKEN}"))).status == 200
    assert len(connections) == 2


async def test_without_a_token_and_an_owner_check_every_client_gets_401() -> None:
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token="")
    for header in ("Bearer", "Bearer ", ""):
        assert (await ask(app, "/health", ("authorization", header))).status == 401


async def test_every_answer_forbids_browsers_to_cache_it(app: Starlette) -> None:
    for target, host in (("/health", "localhost"), ("/nothing", "localhost"), ("/health", "evil.example")):
        reply = await ask(app, target, ("host", host), host=False)
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
