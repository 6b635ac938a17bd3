"""Metadata and answers come from servers: what they may name, and where credentials never go."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.unit.core.mcp_client.builders import until_failed, until_status
from tests.unit.gateway.signin.people import NAME, SignedIn
from tests.unit.gateway.signin.scripted import CODE, REFRESH, RESOURCE, SERVER, TOKEN, Script, scripted
from toolscript.core.errors import ServerRejected, SetupError
from toolscript.core.mcp_client.model import ServerSpec, ServerStatus
from toolscript.core.mcp_client.oauth.challenge import Challenge
from toolscript.core.mcp_client.oauth.discovery import require_safe, without_default_port
from toolscript.core.mcp_client.oauth.exchanges import Answer, checked
from toolscript.core.mcp_client.oauth.tokens import CHANGE_SECONDS
from toolscript.core.mcp_client.servers import McpServers
from toolscript.gateway.signin import sign_in_to, sign_out_of

DOCUMENT = "https://me.example/client.json"

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


def error(description: str) -> Response:
    return JSONResponse({"error": "invalid_grant", "error_description": description}, 400)


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    async with scripted() as made:
        yield made


async def sign_in(script: Script, folder: Path, spec: ServerSpec | None = None, *scopes: str) -> SignedIn:
    done = SignedIn(spec or script.spec, folder)
    await sign_in_to(done.spec, done.credentials, script.dialog, scopes)
    return done


async def refused(script: Script, folder: Path) -> str:
    """Return why nobody can sign in. No credential has left, and nothing is stored."""
    with pytest.raises(ServerRejected) as error:
        await sign_in(script, folder)
    assert script.stolen == []
    assert await SignedIn(script.spec, folder).credentials.load() is None
    return error.value.message


async def test_the_resource_is_bound_and_the_code_has_its_verifier(script: Script, tmp_path: Path) -> None:
    grant = await (await sign_in(script, tmp_path, None, "read", "write")).grant()
    assert (grant.access_token, grant.refresh_token, grant.scope) == (TOKEN, REFRESH, "read write")
    (authorize,) = [seen for seen in script.seen if seen.startswith("authorize")]
    assert "code_challenge_method=S256" in authorize
    (token,) = [seen for seen in script.seen if seen.startswith("/token")]
    resource = f"resource=http%3A%2F%2F{script.address.removeprefix('http://').replace(':', '%3A')}%2Fmcp"
    assert resource in authorize
    assert resource in token
    assert "code_verifier=" in token


@pytest.mark.parametrize(
    ("resource", "server", "says"),
    [
        ({"resource": "https://other.example/mcp"}, {}, "of another resource, https://other.example/mcp"),
        ({"resource": "ADDRESS/other"}, {}, "of another resource"),
        ({"authorization_servers": ["http://evil.example"]}, {}, "http://evil.example, which is not used"),
        ({"authorization_servers": ["https://ann@evil.example"]}, {}, "evil.example, which is not used"),
        ({}, {"issuer": "https://other.example"}, "of another issuer, https://other.example"),
        ({}, {"code_challenge_methods_supported": ["plain"]}, "does not support PKCE with S256"),
        ({}, {"code_challenge_methods_supported": None}, "does not support PKCE with S256"),
        ({}, {"token_endpoint": "http://evil.example/token"}, "http://evil.example, which is not used"),
        ({}, {"authorization_endpoint": "http://evil.example/"}, "http://evil.example, which is not used"),
        ({}, {"token_endpoint": "javascript:alert(1)"}, "has no metadata of an authorization server"),
    ],
)
async def test_metadata_that_lead_elsewhere_are_refused(
    script: Script, tmp_path: Path, resource: dict[str, object], server: dict[str, object], says: str
) -> None:
    script.resource = {
        name: value.replace("ADDRESS", script.address) if isinstance(value, str) else value
        for name, value in resource.items()
    }
    script.server = server
    assert says in await refused(script, tmp_path)


async def test_an_address_of_metadata_in_a_challenge_may_not_lead_anywhere(script: Script, tmp_path: Path) -> None:
    script.challenge = 'Bearer resource_metadata="http://evil.example/metadata", scope="read"'
    assert "http://evil.example, which is not used" in await refused(script, tmp_path)


ADDRESSES: list[tuple[str, str, bool]] = [
    ("https://auth.example/x", "https://mcp.example/mcp", True),
    ("http://auth.example/x", "https://mcp.example/mcp", False),
    ("http://127.0.0.1:8/x", "https://mcp.example/mcp", False),
    ("https://localhost/x", "https://mcp.example/mcp", False),
    ("https://a.localhost./x", "https://mcp.example/mcp", False),
    ("https://[::1]/x", "https://mcp.example/mcp", False),
    ("https://169.254.169.254/latest", "https://mcp.example/mcp", False),
    ("https://10.0.0.1/x", "https://mcp.example/mcp", False),
    ("https://10.0.0.1/x", "https://10.0.0.2/mcp", True),
    ("https://127.1/x", "https://mcp.example/mcp", False),
    ("https://2130706433/x", "https://mcp.example/mcp", False),
    ("https://0x7f000001/x", "https://mcp.example/mcp", False),
    ("https://127.0.0.1./x", "https://mcp.example/mcp", False),
    ("https://\uff11\uff12\uff17.0.0.1/x", "https://mcp.example/mcp", False),
    ("https://127\u30020.0.1/x", "https://mcp.example/mcp", False),
    ("https://[::ffff:127.0.0.1]/x", "https://mcp.example/mcp", False),
    ("https://[64:ff9b::a00:1]/x", "https://mcp.example/mcp", False),
    ("https://[2002:a00:1::]/x", "https://mcp.example/mcp", False),
    ("https://[::127.0.0.1]/x", "https://mcp.example/mcp", False),
    ("https://[64:ff9b:1::a00:1]/x", "https://mcp.example/mcp", False),
    ("https://[fec0::1]/x", "https://mcp.example/mcp", False),
    ("https://[5f00::1]/x", "https://mcp.example/mcp", False),
    ("https://[2606:4700:4700::1111]/x", "https://mcp.example/mcp", True),
    ("https://239.1.1.1/x", "https://mcp.example/mcp", False),
    ("https://[ff0e::1]/x", "https://mcp.example/mcp", False),
    ("https://8.8.8.8/x", "https://mcp.example/mcp", True),
    ("https://auth.example./x", "https://mcp.example/mcp", True),
    ("file:///etc/passwd", "http://127.0.0.1:1/mcp", False),
    ("https://auth.example:99999/", "https://mcp.example/mcp", False),
    ("http://localhost:8/x", "http://127.0.0.1:1/mcp", True),
    ("http://127.0.0.1:8/x", "http://localhost:1/mcp", True),
    ("https://auth.example/x", "http://127.0.0.1:1/mcp", True),
    ("http://mcp.example/mcp", "http://mcp.example/mcp", False),
]


def test_addresses_are_https_and_public_unless_the_server_is_here(subtests: pytest.Subtests) -> None:
    for url, server, is_safe in ADDRESSES:
        with subtests.test(url=url, server=server, is_safe=is_safe):
            if is_safe:
                require_safe(url, server)
            else:
                with pytest.raises(ServerRejected, match="which is not used"):
                    require_safe(url, server)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mcp.example:443/mcp", "https://mcp.example/mcp"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
        ("https://mcp.example:80/mcp", "https://mcp.example:80/mcp"),
    ],
)
def test_the_usual_port_of_an_address_is_left_out(url: str, expected: str) -> None:
    assert without_default_port(url) == expected


async def test_an_address_of_metadata_brings_no_field_of_ours(script: Script, tmp_path: Path) -> None:
    theirs = "audience=api&state=s&redirect_uri=http://evil.example&code_challenge=c&scope=all&request_uri=u"
    script.server = {"authorization_endpoint": f"{script.address}/authorize?{theirs}"}
    opened: list[str] = []

    def show(url: str, redirect_uri: str) -> None:
        opened.append(url)
        script.dialog.show(url, redirect_uri)

    dialog = replace(script.dialog, show=show)
    done = SignedIn(script.spec, tmp_path)
    await sign_in_to(done.spec, done.credentials, dialog, ())
    fields = parse_qsl(urlsplit(opened[0]).query)
    assert len({name for name, _ in fields}) == len(fields)
    assert ("audience", "api") in fields
    assert not {"request_uri", "scope"} & {name for name, _ in fields}
    assert not {"s", "http://evil.example", "c"} & {value for _, value in fields}


def test_a_secret_that_is_a_part_of_another_hides_none_of_it() -> None:
    said = json.dumps({"error": "invalid_grant", "error_description": "C: the verifier is CODE-abc-CODE"}).encode()
    with pytest.raises(ServerRejected) as refusal:
        checked("https://auth.example", Answer(400, {}, said), ["C", "CODE", "CODE-abc-CODE"])
    assert refusal.value.message == "auth.example refused: invalid_grant: C: the verifier is ***"


@pytest.mark.parametrize("path", ["/token", "/register"])
async def test_credentials_follow_no_redirect(script: Script, tmp_path: Path, path: str) -> None:
    script.to_the_thief(path)
    assert "redirects a request that has credentials" in await refused(script, tmp_path)


@pytest.mark.parametrize("path", [RESOURCE, SERVER])
async def test_metadata_follow_no_redirect(script: Script, tmp_path: Path, path: str) -> None:
    script.to_the_thief(path)
    if path == SERVER:
        assert "has no metadata" in await refused(script, tmp_path)
    else:
        # As if there were none: the server is its own authorization server then.
        await sign_in(script, tmp_path)
    assert script.stolen == []


async def test_tokens_are_not_sent_where_a_renewal_or_a_revocation_is_redirected(
    script: Script, tmp_path: Path
) -> None:
    done = await script.signed_in(tmp_path)
    script.to_the_thief("/token")
    script.to_the_thief("/revoke")
    assert await done.credentials.replaced(TOKEN) == ""
    assert (await done.grant()).refresh_token == REFRESH
    out = await sign_out_of(NAME, done.credentials)
    assert out is not None
    assert "redirects a request that has credentials" in out.why_not
    assert script.stolen == []
    assert await done.credentials.load() is None


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        (JSONResponse({"error": "Forbidden"}, 403), True),
        (JSONResponse({"error": "not found"}, 404), True),
        (PlainTextResponse("<html>a proxy</html>", 400), True),
        (PlainTextResponse("<html>a proxy</html>", 401), True),
        (JSONResponse({"error": "temporarily_unavailable"}, 400), True),
        (JSONResponse({"error": "invalid_grant"}, 400), False),
        (JSONResponse({"error": "invalid_grant"}, 403), False),
        (JSONResponse({"error": "invalid_request"}, 400), False),
        (JSONResponse({"error": "bad_refresh_token"}, 200), False),
        (JSONResponse({"error": "slow_down"}, 200), True),
    ],
)
async def test_only_a_refusal_by_oauth_ends_a_sign_in(
    script: Script, tmp_path: Path, answer: Response, is_kept: bool
) -> None:
    done = await script.signed_in(tmp_path)
    script.answers["/token"] = answer
    assert await done.credentials.replaced(TOKEN) == ""
    assert (await done.grant()).refresh_token == (REFRESH if is_kept else "")


async def test_a_bearer_token_does_not_follow_a_redirect_of_the_server(
    script: Script, servers: McpServers, tmp_path: Path
) -> None:
    done = await script.signed_in(tmp_path)
    script.to_the_thief("/mcp")
    servers.use([done.spec])
    await until_failed(servers, NAME)
    assert any(TOKEN in seen for seen in script.seen)
    assert not any(TOKEN in stolen for stolen in script.stolen)


async def test_a_bearer_token_is_for_requests_to_its_server_alone(script: Script, tmp_path: Path) -> None:
    auth = (await script.signed_in(tmp_path)).credentials.auth()
    script.to_the_thief("/moved")
    async with httpx2.AsyncClient(auth=auth, follow_redirects=True, trust_env=False, verify=False) as client:
        assert (await client.get(f"{script.address}/moved")).url.path == "/moved"
        await client.get(f"{script.thief}/named")
    assert TOKEN in script.seen[-1]
    assert script.stolen == ["/moved  ", "/named  "]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (PlainTextResponse("<html>a captive portal</html>"), "answered without a bearer token"),
        (JSONResponse({"access_token": TOKEN, "token_type": "DPoP"}), "answered without a bearer token"),
        (JSONResponse({"access_token": "two words", "token_type": "Bearer"}), "a token that cannot be sent"),
        (JSONResponse({"access_token": "line\nbreak", "token_type": "Bearer"}), "a token that cannot be sent"),
        (
            JSONResponse({"error": "invalid_grant", "error_description": f"no {CODE}"}, 400),
            "invalid_grant: no ***",
        ),
        (JSONResponse({"error": "x", "error_description": "a\x1b[31m" + "b" * 999}, 400), "refused: x: a[U+001B]"),
        (PlainTextResponse("x" * 300_000), "is larger than 262144 bytes"),
    ],
)
async def test_an_answer_that_is_no_token_is_refused_without_repeating_secrets(
    script: Script, tmp_path: Path, answer: Response, says: str
) -> None:
    script.answers["/token"] = answer
    message = await refused(script, tmp_path)
    assert says in message
    assert CODE not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_in": 3599.5},
        {"expires_in": "3599.5", "scope": ["read", "write"]},
        {"expires_in": "", "scope": "", "refresh_token": ""},
        {"expires_in": "soon", "token_type": None},
    ],
)
async def test_a_renewal_in_another_form_does_not_lose_the_sign_in(
    script: Script, tmp_path: Path, fields: dict[str, object]
) -> None:
    done = await script.signed_in(tmp_path)
    script.answers["/token"] = JSONResponse({"access_token": "another-token", "token_type": "Bearer", **fields})
    assert await done.credentials.replaced(TOKEN) == "another-token"
    grant = await done.grant()
    assert grant.refresh_token == REFRESH
    assert grant.scope == ("read write" if fields.get("scope") else "")
    assert grant.seconds == (3599 if "3599" in str(fields["expires_in"]) else 0)


async def test_tokens_that_cannot_be_stored_are_used_all_the_same(script: Script, tmp_path: Path) -> None:
    credentials = (await script.signed_in(tmp_path)).credentials
    long = {"access_token": "a" * 32_000, "refresh_token": "\u00e9" * 32_000, "token_type": "Bearer"}
    script.answers["/token"] = JSONResponse(long)
    assert await credentials.replaced(TOKEN) == "a" * 32_000


async def test_an_empty_address_of_metadata_is_none(script: Script, tmp_path: Path) -> None:
    script.server = {"registration_endpoint": "", "revocation_endpoint": ""}
    done = await sign_in(script, tmp_path, script.with_oauth(client_id="mine"))
    assert (await done.grant()).revocation_endpoint == ""


async def test_an_entry_may_name_its_authorization_server(script: Script, tmp_path: Path) -> None:
    other = script.with_oauth(client_id="mine", client_secret="of-mine", issuer="https://auth.example")
    with pytest.raises(ServerRejected, match=r"another authorization server.*nothing was sent") as error:
        await sign_in(script, tmp_path, other)
    assert error.value.hint == "if this is right, correct oauth.issuer first"
    assert not any(seen.startswith(("authorize", "/token")) for seen in script.seen)
    await sign_in(script, tmp_path, script.with_oauth(client_id="mine", issuer=f"{script.address}/"))


async def test_a_client_secret_stays_with_the_authorization_server_of_the_last_sign_in(
    script: Script, tmp_path: Path
) -> None:
    done = await script.signed_in(tmp_path)
    await done.credentials.save(replace(await done.grant(), issuer="https://auth.example"))
    with pytest.raises(ServerRejected, match=r"another authorization server.*nothing was sent") as error:
        await sign_in(script, tmp_path, script.with_oauth(client_id="mine", client_secret="of-mine"))
    assert f"toolscript logout {NAME}" in error.value.hint
    await sign_out_of(NAME, done.credentials)
    await sign_in(script, tmp_path, script.with_oauth(client_id="mine", client_secret="of-mine"))


async def test_a_person_is_told_where_the_code_goes(script: Script, tmp_path: Path) -> None:
    notes: list[str] = []
    done = SignedIn(script.spec, tmp_path)
    for endpoint in (f"{script.address}/token", f"{script.thief}/token"):
        script.server = {"token_endpoint": endpoint}
        await sign_in_to(done.spec, done.credentials, replace(script.dialog, note=notes.append), ())
    host = script.thief.removeprefix("http://")
    assert notes == [f"the code goes to {host}, which is not the host of the page"]


async def test_a_further_scope_is_added_to_those_of_the_last_sign_in(script: Script, tmp_path: Path) -> None:
    await sign_in(script, tmp_path, None, "read")
    done = await sign_in(script, tmp_path, None, "write")
    assert (await done.grant()).scope == "read write"
    await done.credentials.save((await done.grant()).without_tokens())
    await sign_in(script, tmp_path, None, "write")
    assert (await done.grant()).scope == "write"


async def test_a_registration_that_the_server_forgot_is_not_used_again(script: Script, tmp_path: Path) -> None:
    await sign_in(script, tmp_path)
    usual = {"client_id": "registered", "redirect_uris": ["http://127.0.0.1/callback"]}
    script.answers["/register"] = JSONResponse({**usual, "client_id": "registered-again"}, 201)
    script.answers["/token"] = JSONResponse({"error": "invalid_client"}, 401)
    with pytest.raises(ServerRejected, match="invalid_client"):
        await sign_in(script, tmp_path)
    del script.answers["/token"]
    done = await sign_in(script, tmp_path)
    assert (await done.grant()).client.client_id == "registered-again"


async def test_where_clients_cannot_register_the_entry_may_name_one(script: Script, tmp_path: Path) -> None:
    script.server = {"registration_endpoint": None}
    with pytest.raises(SetupError, match="does not let clients register themselves") as error:
        await sign_in(script, tmp_path)
    assert '"oauth": {"clientId"' in error.value.hint
    done = await sign_in(script, tmp_path, script.with_oauth(client_id="mine"))
    assert (await done.grant()).client.client_id == "mine"


@pytest.mark.parametrize(
    ("supported", "expected"), [(True, "https://me.example/client.json"), (False, "registered")]
)
async def test_a_metadata_document_of_the_client_is_used_where_it_is_supported(
    script: Script, tmp_path: Path, supported: bool, expected: str
) -> None:
    script.server = {"client_id_metadata_document_supported": supported}
    done = await sign_in(script, tmp_path, script.with_oauth(metadata_url=DOCUMENT))
    assert (await done.grant()).client.client_id == expected


async def test_a_server_that_refuses_without_metadata_fails_as_before(script: Script, servers: McpServers) -> None:
    script.answers[RESOURCE] = script.answers[SERVER] = PlainTextResponse("", 404)
    servers.use([script.spec])
    assert (await until_failed(servers, NAME)).error == "HTTP 401 Unauthorized"


async def test_a_server_without_a_challenge_wants_a_sign_in_if_its_metadata_are_there(
    script: Script, servers: McpServers
) -> None:
    servers.use([script.spec])
    await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
    asked = len(script.seen)
    assert asked < 20
    servers.use([script.spec])
    assert len(script.seen) == asked


async def test_a_server_that_refuses_every_token_is_not_asked_in_a_loop(
    script: Script, servers: McpServers, tmp_path: Path
) -> None:
    done = await script.signed_in(tmp_path)
    servers.use([done.spec])
    await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
    asked = len(script.seen)
    await asyncio.sleep(4 * CHANGE_SECONDS)
    assert len(script.seen) == asked


async def test_a_server_with_credentials_of_its_own_is_not_signed_in_to(
    script: Script, servers: McpServers
) -> None:
    spec = ServerSpec(
        NAME, script.spec.transport, url=script.spec.url, headers={"authorization": "Bearer mine-own"}
    )
    servers.use([spec])
    assert (await until_failed(servers, NAME)).error == "HTTP 401 Unauthorized"
    assert all(seen.startswith("/mcp") for seen in script.seen)


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (401, 'Bearer resource_metadata="https://a/b", scope="x y"', Challenge("https://a/b", ("x", "y"))),
        (401, "Bearer resource_metadata=https://a/b", Challenge("https://a/b")),
        (401, 'Basic realm="x"', Challenge()),
        (401, 'Bearer error_scope="no", x="resource_metadata=evil"', Challenge()),
        (403, 'Bearer error="insufficient_scope", scope="w"', Challenge("", ("w",), wants_more=True)),
        (401, "", Challenge()),
        (401, "Bearer " + "," * 1_000_000, Challenge()),
    ],
)
def test_a_challenge_is_read(status: int, header: str, expected: Challenge) -> None:
    assert Challenge.of(status, header) == expected
