"""From a server that refuses to the first call: discovery, registration, consent, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.authorization_server_running import AuthorizationServer, ask_for_tokens, changed, visit
from tests.unit.core.mcp_client.builders import running, text, until_ready, until_status
from tests.unit.gateway.signin.conftest import PROTECTED
from tests.unit.gateway.signin.people import NAME, Person, PersonElsewhere, SignedIn, remote, signed_in, store_of
from toolscript.core.errors import ServerRejected, ServerUnavailable, SetupError
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.core.mcp_client.servers import McpServers

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]


async def test_a_server_that_wants_a_sign_in_says_so_and_answers_once_its_person_has_signed_in(
    servers: McpServers, port: str, tmp_path: Path
) -> None:
    spec = remote(port)
    servers.use([spec])
    state = await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
    assert state.error == "only a person can sign in: `toolscript login remote`"
    with pytest.raises(ServerUnavailable, match="needs a sign-in") as refused:
        await servers.call(NAME, "secret_of_life", {})
    assert "toolscript login remote" in refused.value.hint
    person = Person()
    await signed_in(spec, tmp_path, person)
    await until_ready(servers, NAME)
    assert text(await servers.call(NAME, "secret_of_life", {})) == "42"
    page = person.pages.get(timeout=5)
    assert "You can close this window" in page.text
    assert page.headers["cache-control"] == "no-store"


async def test_a_person_on_another_machine_pastes_the_address(port: str, tmp_path: Path) -> None:
    person = PersonElsewhere(lambda address: ["what?", "just-the-code", address])
    done = await signed_in(remote(port), tmp_path, person)
    assert (await done.grant()).access_token
    assert [complaint.partition(";")[0] for complaint in person.complaints] == [
        "the code alone does not say who issued it",
        "the code alone does not say who issued it",
    ]


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (lambda address: changed(address, iss="https://evil.example"), "is not from 127.0.0.1"),
        (lambda address: changed(address, iss=None), "is not from 127.0.0.1"),
        (lambda address: changed(address, code=None), "has no code"),
        (lambda address: changed(address, code="stolen-elsewhere"), "refused: invalid_grant"),
        (lambda address: changed(address, code=None, error="access_denied"), "not signed in: access_denied"),
    ],
)
async def test_an_answer_that_is_not_the_right_one_is_refused(
    port: str, tmp_path: Path, alter: Callable[[str], str], says: str
) -> None:
    person = Person(alter)
    with pytest.raises(ServerRejected, match=says):
        await signed_in(remote(port), tmp_path, person)
    assert "Not signed in" in person.pages.get(timeout=5).text
    assert await SignedIn(remote(port), tmp_path).credentials.load() is None


@pytest.mark.parametrize("state", ["another", None])
async def test_an_answer_to_another_sign_in_does_not_end_this_one(
    port: str, tmp_path: Path, state: str | None
) -> None:
    strays: list[httpx.Response] = []

    def stray(address: str) -> str:
        strays.append(visit(changed(address, state=state)))
        return address

    done = await signed_in(remote(port), tmp_path, Person(stray))
    assert (await done.grant()).access_token
    assert [(page.status_code, "another sign-in" in page.text) for page in strays] == [(400, True)]


async def test_a_pasted_answer_to_another_sign_in_is_refused(port: str, tmp_path: Path) -> None:
    person = PersonElsewhere(lambda address: [changed(address, state="another")])
    with pytest.raises(ServerRejected, match="belongs to another sign-in"):
        await signed_in(remote(port), tmp_path, person)


async def test_a_code_is_good_for_nobody_else(issuer: AuthorizationServer, port: str, tmp_path: Path) -> None:
    """Who stole a code from the address lacks the verifier; and whoever repeats it comes too late."""
    stolen: dict[str, str] = {}

    def steal(address: str) -> str:
        code = dict(httpx.URL(address).params)["code"]
        redirect_uri = address.partition("?")[0]
        for verifier in ({}, {"code_verifier": "v" * 64}):
            form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, **verifier}
            answer = ask_for_tokens(issuer.issuer, **form, client_id="by-hand")
            assert answer.status_code in (400, 401), answer.text
        stolen.update(form)
        return address

    done = await signed_in(remote(port), tmp_path, Person(steal))
    grant = await done.grant()
    replayed = ask_for_tokens(issuer.issuer, **stolen, client_id=grant.client.client_id)
    assert replayed.json()["error"] == "invalid_grant"


async def test_the_redirect_address_takes_one_answer_from_this_machine_and_is_gone(
    port: str, tmp_path: Path
) -> None:
    seen: list[int] = []

    def probe(address: str) -> str:
        base = address.partition("/callback")[0]
        seen.append(httpx.get(f"{base}/favicon.ico", trust_env=False).status_code)
        seen.append(httpx.post(address, trust_env=False).status_code)
        headers = {"Host": "attacker.example"}
        seen.append(httpx.get(address, headers=headers, trust_env=False).status_code)
        return address

    person = Person(probe)
    await signed_in(remote(port), tmp_path, person)
    assert seen == [404, 404, 404]
    with pytest.raises(httpx.ConnectError):
        visit(person.sent_to)


async def test_a_client_that_was_registered_by_hand_signs_in_with_its_secret(
    issuer: AuthorizationServer, port: str, tmp_path: Path
) -> None:
    registered = issuer.count("registered", "/reg")
    spec = remote(port, client_id="by-hand", client_secret="a-client-secret-of-the-test", scopes=("tools:read",))
    done = await signed_in(spec, tmp_path)
    grant = await done.grant()
    assert (grant.client.client_id, grant.client.auth_method) == ("by-hand", "client_secret_basic")
    assert issuer.count("registered", "/reg") == registered
    wrong = replace(spec, oauth=replace(spec.oauth, client_secret="another-secret-of-nobody"))
    with pytest.raises(ServerRejected, match="invalid_client") as refused:
        await signed_in(wrong, tmp_path)
    assert "another-secret-of-nobody" not in refused.value.message


async def test_a_second_sign_in_uses_the_registration_of_the_first(
    issuer: AuthorizationServer, port: str, tmp_path: Path
) -> None:
    first = await (await signed_in(remote(port), tmp_path)).grant()
    registered = issuer.count("registered", "/reg")
    second = await (await signed_in(remote(port), tmp_path)).grant()
    assert issuer.count("registered", "/reg") == registered
    assert second.client == first.client
    assert second.access_token != first.access_token


async def test_a_port_that_is_taken_is_named(port: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"port {port} of this machine cannot be used"):
        await signed_in(remote(port, callback_port=int(port)), tmp_path)


async def test_tokens_are_stored_for_one_address_only(port: str, tmp_path: Path) -> None:
    done = await signed_in(remote(port), tmp_path)
    moved = SignedIn(replace(done.spec, url="http://127.0.0.1:9/mcp"), tmp_path)
    assert await moved.credentials.load() is None
    assert await moved.credentials.access_token() == ""
    assert store_of(tmp_path).names() == []


async def test_a_token_for_another_server_is_refused_by_the_server(
    issuer: AuthorizationServer, servers: McpServers, port: str, tmp_path: Path
) -> None:
    elsewhere = await signed_in(remote(port), tmp_path)
    with running(PROTECTED, issuer.issuer) as (_, other):
        spec = replace(remote(other), name="other")
        there = SignedIn(spec, tmp_path)
        # As if our own check of the address were not there.
        await there.credentials.save(replace(await elsewhere.grant(), server_url=spec.url, refresh_token=""))
        servers.use([spec])
        await until_status(servers, "other", ServerStatus.SIGN_IN_NEEDED)
