"""Who may ask: names of this machine only, no page of a stranger, and whoever shows the token."""

import pytest
from starlette.applications import Starlette

from tests.unit.gateway.http.asking import HOST, ask
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


@pytest.mark.parametrize("host", STRANGERS)
async def test_any_other_name_is_refused(app: Starlette, host: str) -> None:
    """A page can have its own name lead to this machine; the name is then still the page's."""
    reply = await ask(app, "/health", ("host", host), host=False)
    assert (reply.status, reply.error["code"], reply.error["details"]) == (403, "FORBIDDEN", {"header": "Host"})
    assert reply.headers["x-request-id"]


async def test_no_host_or_two_of_them_are_refused(app: Starlette) -> None:
    assert (await ask(app, "/health", host=False)).status == 403
    assert (await ask(app, "/health", HOST)).status == 403
    assert (await ask(app, "/health", ("host", "evil.example"))).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:7355", "localhost:7355", "[::1]:7355"])
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
async def test_a_page_of_the_gateways_own_address_has_to_show_the_token(scheme: str, host: str) -> None:
    """Somebody else may listen at the same port of another address, and a browser takes the two for one."""
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token=TOKEN, is_same_person=lambda *_: True)
    origin, shown = ("origin", f"{scheme}://{host}"), ("authorization", f"Bearer {TOKEN}")
    by_browser = ("sec-fetch-site", "same-origin")
    assert (await ask(app, "/health", origin, by_browser)).status == 401
    assert (await ask(app, "/health", by_browser)).status == 401
    assert (await ask(app, "/health", origin, by_browser, shown)).status == 200
    assert (await ask(app, "/health", origin)).status == 200
    assert (await ask(app, "/health")).status == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "localhost:3000", "127.0.0.1:73550", "[::1]:80"])
async def test_a_page_of_another_port_of_this_machine_may_not(app: Starlette, host: str) -> None:
    """Whatever a developer serves there may come from anybody."""
    for method, path in (("GET", "/search?q=x"), ("POST", "/tools/files__read_file"), ("POST", "/mcp")):
        reply = await ask(app, path, ("origin", f"http://{host}"), method=method)
        assert (reply.status, reply.error["details"]) == (403, {"header": "Origin"})


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin"])
async def test_a_browser_that_says_whose_page_asks_is_believed(app: Starlette, site: str) -> None:
    """An image or a form sends no origin with a GET, and browsers say this of themselves."""
    reply = await ask(app, "/search?q=x", ("sec-fetch-site", site))
    assert (reply.status, reply.error["details"]) == (403, {"header": "Sec-Fetch-Site"})
    for own in ("same-origin", "none"):
        assert (await ask(app, "/livez", ("sec-fetch-site", own))).status == 200


@pytest.mark.parametrize(
    "origin",
    [
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
    ],
)
async def test_a_page_of_another_machine_may_not_ask(app: Starlette, origin: str) -> None:
    for method, path in (("GET", "/health"), ("POST", "/tools/files__read_file"), ("GET", "/livez")):
        reply = await ask(app, path, ("origin", origin), method=method)
        assert (reply.status, reply.error["details"]) == (403, {"header": "Origin"})


async def test_of_two_origins_both_must_be_its_own(app: Starlette) -> None:
    fine = ("origin", "http://localhost:7355")
    assert (await ask(app, "/livez", fine, fine)).status == 200
    assert (await ask(app, "/livez", fine, ("origin", "http://evil.example"))).status == 403


async def test_nothing_invites_other_pages(app: Starlette) -> None:
    reply = await ask(app, "/health", ("origin", "http://localhost:7355"))
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("shown", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
async def test_whoever_shows_the_token_may_ask(locked: Starlette, shown: str) -> None:
    assert (await ask(locked, "/health", ("authorization", shown))).status == 200


@pytest.mark.parametrize(
    "shown",
    [
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
    ],
)
@pytest.mark.parametrize("path", ["/health", "/search?q=x", "/servers", "/tools", "/runtime/tools.ts", "/nowhere"])
async def test_whoever_does_not_may_not(locked: Starlette, path: str, shown: str | None) -> None:
    reply = await ask(locked, path, *([("authorization", shown)] if shown is not None else []))
    assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in reply.body.decode()


async def test_whether_it_lives_anybody_on_this_machine_may_ask(locked: Starlette) -> None:
    assert (await ask(locked, "/livez")).status == 200
    assert (await ask(locked, "/livez", ("host", "evil.example"), host=False)).status == 403
    assert (await ask(locked, "/livez/../health")).status == 401


async def test_a_call_without_the_token_reaches_no_tool() -> None:
    double = GatewayDouble()
    app = open_app(double, token=TOKEN)
    assert (await ask(app, "/tools/files__read_file", method="POST", body=b"{}")).status == 401
    assert double.calls == []


async def test_the_person_it_runs_for_needs_no_token_and_nobody_else_is_let_in() -> None:
    asked: list[tuple[tuple[str, int], tuple[str, int]]] = []

    def same_person(client: tuple[str, int], server: tuple[str, int]) -> bool:
        asked.append((client, server))
        return len(asked) == 1

    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token=TOKEN, is_same_person=same_person)
    assert (await ask(app, "/health")).status == 200
    refused = await ask(app, "/health")
    assert refused.status == 401
    assert "toolscript gateway env" in refused.error["details"]["hint"]
    assert "config connect" in refused.error["details"]["hint"]
    assert asked == [(("127.0.0.1", 1), ("127.0.0.1", 7355))] * 2
    assert (await ask(app, "/health", ("authorization", f"Bearer {TOKEN}"))).status == 200
    assert len(asked) == 2


async def test_without_a_token_and_without_owners_nobody_is_let_in() -> None:
    app = create_gateway_app(GatewayDouble(), limit=3, threshold=0.0, token="")
    for shown in ("Bearer", "Bearer ", ""):
        assert (await ask(app, "/health", ("authorization", shown))).status == 401


async def test_every_answer_tells_browsers_to_keep_nothing_of_it(app: Starlette) -> None:
    for target, host in (("/health", "localhost"), ("/nothing", "localhost"), ("/health", "evil.example")):
        reply = await ask(app, target, ("host", host), host=False)
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
