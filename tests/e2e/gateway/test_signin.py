"""`toolscript login`: from a server that refuses to its first call, on every surface, with a real browser."""

import asyncio
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Gateway, Machine, until
from tests.support.authorization_server_running import (
    AuthorizationServer,
    authorization_server,
    browser_command,
    consent,
)
from tests.unit.core.mcp_client.builders import running

pytestmark = pytest.mark.requirement("TS-001", "TS-010", "TS-011")

HOW = "`toolscript login remote`"
SECONDS = 60
TOOL = "remote__secret_of_life"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LOGIN_PAGE = re.compile(r"http://127\.0\.0\.1:\d+/auth\?\S+")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(issuer: AuthorizationServer) -> Iterator[str]:
    with running("tests.support.mcp_servers.protected", issuer.issuer) as (_, port):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture
def person(machine: Machine, url: str) -> Machine:
    """A machine with the protected server, without a keyring and without a browser."""
    with_server = machine.also(NO_PROXY="127.0.0.1", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    with_server.configure({"remote": {"url": url}})
    return with_server


def login_elsewhere(machine: Machine) -> str:
    """Sign in without a browser here: paste the address where one elsewhere ends. Return the output."""
    process = subprocess.Popen(
        command("login", "remote", "--no-browser"),
        env=machine.whole_environment(),
        cwd=machine.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    shown = ""
    # Without an address it would be waited for without end.
    limit = threading.Timer(SECONDS, process.kill)
    limit.start()
    while (found := LOGIN_PAGE.search(shown)) is None:
        line = process.stderr.readline()
        assert line, f"it ended: {shown}"
        shown += line
    limit.cancel()
    output, errors = process.communicate(f"{consent(found[0])}\n", timeout=SECONDS)
    assert process.returncode == 0, errors
    return shown + errors + output


def tokens_of(machine: Machine) -> list[str]:
    """The secrets of the sign-in, which no other file may have."""
    (grant,) = json.loads((machine.data / "secrets" / "secrets.json").read_text("utf-8")).values()
    data = json.loads(grant)
    return [data["access_token"], data["refresh_token"]]


def assert_nothing_secret(machine: Machine, tokens: list[str], *outputs: str) -> None:
    store = machine.data / "secrets" / "secrets.json"
    texts = [path.read_bytes() for path in machine.folder.rglob("*") if path.is_file() and path != store]
    for token in tokens:
        assert all(token.encode() not in text for text in [*texts, *(output.encode() for output in outputs)])


def test_every_surface_says_who_can_sign_in_and_how(person: Machine) -> None:
    with person.gateway() as gateway:
        until(lambda: gateway.server("remote")["status"] == "sign-in needed", "the state of the server")
        here = person.here()
        assert HOW in here.run("list-servers", code=1).stdout
        assert "1 sign-in needed (remote)" in here.run("gateway", "status").stdout
        assert HOW in here.run("search", "secret of life", code=1).stderr
        called = here.run("call", TOOL, code=2).stderr
        assert "remote needs a sign-in" in called
        assert f"only a person can sign in: {HOW}" in called
        (finding,) = [one for one in here.json("doctor", code=2)["findings"] if one["code"] == "SIGN_IN"]
        assert HOW in finding["fix"]
        assert "ask the user to sign in to remote" in asyncio.run(call_as_agent(gateway))
        assert "ask the user to sign in to remote" in called_at_one_server(gateway)
        log = gateway.log.read_text("utf-8")
    # Once, and not at each retry.
    assert log.count("MCP server is not ready") == 0


def test_a_running_gateway_uses_the_sign_in_at_once_and_nothing_secret_is_written(person: Machine) -> None:
    with person.gateway() as gateway:
        until(lambda: gateway.server("remote")["status"] == "sign-in needed", "the state of the server")
        shown = login_elsewhere(person)
        assert "remote is ready, with 2 tools" in shown
        assert gateway.call("remote__secret_of_life").json()["content"][0]["text"] == "42"
        assert TOOL in person.here().run("search", "secret of life").stdout
        assert passes(gateway)
        tokens = tokens_of(person)
        out = person.run("logout", "remote").stdout
        assert "its tokens are forgotten, and were revoked" in out
        assert gateway.call("remote__secret_of_life").status_code == 503
        until(lambda: gateway.server("remote")["status"] == "sign-in needed", "the end of the sign-in")
        activity = person.here().run("activity", "--json").stdout
    assert_nothing_secret(person, tokens, shown, out, activity)
    assert person.run("logout", "remote", code=1).stdout == "nobody is signed in to remote\n"


async def call_as_agent(gateway: Gateway) -> str:
    async with Client(f"{gateway.url}/mcp") as agent:
        answer = await agent.call_tool("call_tool", {"tool": TOOL, "arguments": {}})
    assert answer.is_error
    return str(answer.content)


def passes(gateway: Gateway) -> bool:
    """Return whether the server itself answers through the gateway, with the token."""
    return "42" in called_at_one_server(gateway)


def called_at_one_server(gateway: Gateway) -> str:
    """Return the answer of a call at the server's own endpoint."""
    body = {**PING, "method": "tools/call", "params": {"name": "secret_of_life", "arguments": {}}}
    headers = {"Accept": "application/json, text/event-stream"}
    begun = {**PING, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}}
    begun["params"]["clientInfo"] = {"name": "test", "version": "1"}  # type: ignore[index]
    answer = gateway.ask("/mcp/remote", "POST", json=begun, headers={**headers, **authorization(gateway)})
    headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], **authorization(gateway)}
    return gateway.ask("/mcp/remote", "POST", json=body, headers=headers).text


def authorization(gateway: Gateway) -> dict[str, str]:
    return {"Authorization": f"Bearer {gateway.token}"} if gateway.token else {}


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_a_person_agrees_in_a_real_browser(person: Machine, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with_browser = person.also(BROWSER=browser_command(str(CHROMIUM), notes), TOOLSCRIPT_GATEWAY_ALONE="true")
    assert "signed in to remote" in with_browser.run("login", "remote").stdout
    until(lambda: notes.exists() and "close" in notes.read_text("utf-8"), "the page at the end")
    assert notes.read_text("utf-8").split("\n")[1] == "Signed in to remote"
    assert "42" in with_browser.run("call", TOOL).stdout


def test_an_import_says_which_servers_want_a_sign_in(person: Machine, url: str) -> None:
    (person.home / ".cursor").mkdir()
    servers = {"wiki": {"url": url}, "open": {"url": "http://127.0.0.1:9/mcp"}}
    (person.home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    done = person.run("config", "import", "cursor", "--yes")
    assert "sign in: `toolscript login wiki`" in done.stderr
    assert "login open" not in done.stderr


def test_what_cannot_be_signed_in_to_is_said(person: Machine, url: str) -> None:
    person.configure(
        {"local": {"command": "x"}, "own": {"url": url, "headers": {"Authorization": "Bearer abcdefgh"}}}
    )
    person = person.here()
    assert "signs in by itself" in person.run("login", "local", code=2).stderr
    assert "has credentials of its own" in person.run("login", "own", code=2).stderr
    assert "there is no server 'remot'" in person.run("login", "remot", code=2).stderr
