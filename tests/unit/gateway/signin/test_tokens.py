"""Tokens after the sign-in: renewed once for all, rotated, ended by either side, for one server alone."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.authorization_server_running import AuthorizationServer, authorization_server
from tests.unit.core.mcp_client.builders import ROOT, running, text, until_ready, until_status
from tests.unit.gateway.signin.conftest import PROTECTED
from tests.unit.gateway.signin.people import NAME, remote, sign_ins_of, signed_in
from toolscript.core.errors import ServerRejected, ServerUnavailable, SetupError
from toolscript.core.mcp_client.model import ServerStatus
from toolscript.core.mcp_client.oauth.flow import refresh
from toolscript.core.mcp_client.servers import McpServers
from toolscript.gateway.signin import sign_out_of

pytestmark = [pytest.mark.requirement("TS-011"), pytest.mark.slow]

CALLS = 8
ANOTHER_PROCESS = """
import asyncio, json, sys
from pathlib import Path
from toolscript.core.mcp_client.model import ServerSpec, Transport
from toolscript.core.mcp_client.oauth.tokens import SignIns
from toolscript.gateway.secret_store import open_secret_store

async def main():
    folder = Path(sys.argv[2])
    sign_ins = SignIns(folder / "sign-ins", lambda: open_secret_store(folder, find=lambda: None))
    credentials = sign_ins.of(ServerSpec("remote", Transport.HTTP, url=sys.argv[1]))
    await credentials.load()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([await credentials.replaced("not-a-token-of-anybody") for _ in range(3)]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def hasty() -> Iterator[AuthorizationServer]:
    """One whose tokens are valid for two seconds."""
    with authorization_server(2) as server:
        yield server


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def call_often(servers: McpServers) -> list[str]:
    calls = [servers.call(NAME, "secret_of_life", {}) for _ in range(CALLS)]
    return [text(result) for result in await asyncio.gather(*calls)]


async def test_several_calls_with_a_refused_token_renew_it_once(
    issuer: AuthorizationServer, servers: McpServers, port: str, tmp_path: Path
) -> None:
    done = await signed_in(remote(port), tmp_path)
    servers.use([done.spec])
    await until_ready(servers, NAME)
    before, renewed = await done.grant(), issuer.count("given")
    await done.spoil()
    assert await call_often(servers) == ["42"] * CALLS
    after = await done.grant()
    assert issuer.count("given") == renewed + 1
    assert after.refresh_token != before.refresh_token
    with pytest.raises(ServerRejected, match="invalid_grant"):
        await refresh(before)


async def test_several_processes_renew_a_token_once(
    issuer: AuthorizationServer, port: str, tmp_path: Path
) -> None:
    done = await signed_in(remote(port), tmp_path)
    await done.spoil()
    renewed = issuer.count("given")
    command = [sys.executable, "-c", ANOTHER_PROCESS, done.spec.url, str(tmp_path)]
    processes = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    tokens = {token for output, _ in answers for token in json.loads(output)}
    assert tokens == {(await done.grant()).access_token}
    assert issuer.count("given") == renewed + 1


async def test_calls_go_on_while_tokens_expire(hasty: AuthorizationServer, tmp_path: Path) -> None:
    with running(PROTECTED, hasty.issuer) as (_, port):
        done = await signed_in(remote(port), tmp_path)
        servers = McpServers(sign_ins=sign_ins_of(tmp_path))
        servers.use([done.spec])
        await until_ready(servers, NAME)
        async with asyncio.timeout(30):
            while hasty.count("given") < 3:
                assert await call_often(servers) == ["42"] * CALLS
        assert hasty.count("refused") == 0
        await servers.close()


async def test_a_token_that_is_about_to_expire_is_renewed_before_it_is_used(
    issuer: AuthorizationServer, port: str, tmp_path: Path
) -> None:
    done = await signed_in(remote(port), tmp_path)
    grant = await done.grant()
    assert await done.credentials.access_token() == grant.access_token
    await done.credentials.save(replace(grant, expires_at=0.0))
    credentials = done.credentials
    tokens = await asyncio.gather(*(credentials.access_token() for _ in range(CALLS)))
    assert set(tokens) == {(await done.grant()).access_token}
    assert grant.access_token not in tokens


async def test_a_refused_renewal_ends_the_sign_in_until_the_next(
    servers: McpServers, port: str, tmp_path: Path
) -> None:
    done = await signed_in(remote(port), tmp_path)
    servers.use([done.spec])
    await until_ready(servers, NAME)
    # Used up: as if the authorization server had ended the sign-in.
    await refresh(await done.grant())
    await done.spoil()
    with pytest.raises(ServerUnavailable, match="needs a sign-in"):
        await servers.call(NAME, "secret_of_life", {})
    await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
    kept = await done.grant()
    assert (kept.access_token, kept.refresh_token) == ("", "")
    assert kept.client.client_id
    await signed_in(done.spec, tmp_path)
    await until_ready(servers, NAME)


async def test_a_token_that_a_server_repeats_is_not_shown(servers: McpServers, port: str, tmp_path: Path) -> None:
    done = await signed_in(remote(port), tmp_path)
    servers.use([done.spec])
    await until_ready(servers, NAME)
    with pytest.raises(ServerRejected, match=r"I know \*\*\*$"):
        await servers.call(NAME, "refuse_with_your_token", {})


async def test_an_authorization_server_that_is_away_ends_no_sign_in(port: str, tmp_path: Path) -> None:
    done = await signed_in(remote(port), tmp_path)
    grant = replace(await done.grant(), token_endpoint="http://127.0.0.1:9/token", expires_at=0.0)
    await done.credentials.save(grant)
    with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:9 cannot be reached"):
        await done.credentials.access_token()
    assert (await done.grant()).refresh_token


async def test_signing_out_revokes_the_tokens_and_forgets_the_registration(
    servers: McpServers, port: str, tmp_path: Path
) -> None:
    done = await signed_in(remote(port), tmp_path)
    servers.use([done.spec])
    await until_ready(servers, NAME)
    grant = await done.grant()
    out = await sign_out_of(NAME, done.credentials)
    assert out is not None
    assert out.revoked
    assert await done.credentials.load() is None
    with pytest.raises(ServerRejected, match="invalid_grant"):
        await refresh(grant)
    with pytest.raises(ServerUnavailable, match="needs a sign-in"):
        await servers.call(NAME, "secret_of_life", {})
    await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
    assert await sign_out_of(NAME, done.credentials) is None
    kept = "".join(path.read_text("utf-8") for path in files_in(tmp_path))
    assert grant.refresh_token not in kept
    assert grant.client.client_id not in kept


async def test_a_token_without_the_scope_that_the_server_wants_names_the_scope(
    issuer: AuthorizationServer, tmp_path: Path
) -> None:
    with running(PROTECTED, issuer.issuer, SCOPE="tools:write") as (_, port):
        spec = remote(port, scopes=("tools:read",))
        await signed_in(spec, tmp_path)
        servers = McpServers(sign_ins=sign_ins_of(tmp_path))
        servers.use([spec])
        await until_status(servers, NAME, ServerStatus.SIGN_IN_NEEDED)
        await signed_in(replace(spec, oauth=replace(spec.oauth, scopes=("tools:write",))), tmp_path)
        await until_ready(servers, NAME)
        await servers.close()


async def test_a_folder_that_cannot_be_written_is_named(port: str, tmp_path: Path) -> None:
    (tmp_path / "sign-ins").write_text("no folder", "utf-8")
    with pytest.raises(SetupError, match="sign-ins cannot be written"):
        await signed_in(remote(port), tmp_path)


async def test_only_their_user_can_read_the_files_of_a_sign_in(port: str, tmp_path: Path) -> None:
    await signed_in(remote(port), tmp_path)
    assert files_in(tmp_path)
    assert [path for path in files_in(tmp_path) if path.stat().st_mode & 0o077] == []
