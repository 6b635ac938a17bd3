"""Two users of one machine: a gateway belongs to the one who started it. The other is a real one (`setpriv`)."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests.e2e.gateway.machines import Gateway, Machine, is_alive, mcp_server, new_machine, until
from tests.unit.gateway.typescript.deno import run_client_under_deno

pytestmark = [
    pytest.mark.requirement("TS-008", "TR-004"),
    pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"),
]
NOBODY = 65534
PATHS = ("/search?q=add", "/health", "/servers", "/tools", "/runtime/tools.ts", "/mcp", "/mcp/plain")
ASK = """
import sys, urllib.request, urllib.error
for line in sys.stdin:
    method, url, *token = line.split()
    headers = {"Authorization": f"Bearer {token[0]}"} if token else {}
    body = b'{"a": 1, "b": 2}' if method == "POST" else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)) as answer:
            print(answer.status, flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
"""


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[tuple[Machine, Gateway]]:
    """Yield a gateway with default settings, without an explicit token."""
    machine = new_machine(tmp_path_factory.mktemp("owned") / "machine", weights)
    machine.configure({"plain": mcp_server("plain")})
    with machine.gateway() as gateway:
        until(lambda: gateway.server("plain").get("status") == "ready", "the server")
        yield machine, gateway


def as_nobody(*words: str, standard_input: str = "") -> "subprocess.CompletedProcess[str]":
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return subprocess.run(
        [*user, *words], input=standard_input, capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )


def statuses_for_nobody(gateway: Gateway, *token: str) -> set[int]:
    requests = [("GET", path) for path in PATHS] + [("POST", "/tools/plain__add"), ("POST", "/mcp")]
    lines = "".join(f"{method} {gateway.url}{path} {' '.join(token)}\n" for method, path in requests)
    done = as_nobody(sys.executable, "-c", ASK, standard_input=lines)
    assert done.returncode == 0, done.stderr
    result = [int(line) for line in done.stdout.split()]
    assert len(result) == len(requests)
    return set(result)


def test_another_user_can_neither_read_nor_call(owned: tuple[Machine, Gateway]) -> None:
    assert statuses_for_nobody(owned[1]) == {401}
    assert statuses_for_nobody(owned[1], "wrong") == {401}


def test_a_header_that_names_another_connection_grants_nothing(owned: tuple[Machine, Gateway]) -> None:
    """The owner has a connection open, and another user claims its port."""
    _, gateway = owned
    port = int(gateway.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as owners:
        ours = f"127.0.0.1:{owners.getsockname()[1]}"
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Port"):
            claim = f"for={ours}" if header == "Forwarded" else ours
            requests = (
                "import sys, urllib.request, urllib.error\n"
                "try: print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], "
                "headers={sys.argv[2]: sys.argv[3]})).status)\n"
                "except urllib.error.HTTPError as error: print(error.code)"
            )
            done = as_nobody(sys.executable, "-c", requests, f"{gateway.url}/health", header, claim)
            assert done.stdout.strip() == "401", (header, done.stderr)


def test_another_user_finds_no_token_to_show(owned: tuple[Machine, Gateway]) -> None:
    machine, _ = owned
    files = [path for path in (machine.data / "run").iterdir() if path.is_file()]
    assert any(path.name == "token" for path in files)
    for path in files:
        assert path.stat().st_mode & 0o077 == 0, path
        # Another user on the same machine who knows the path.
        assert as_nobody("cat", str(path)).returncode != 0
    assert (machine.data / "run").stat().st_mode & 0o077 == 0


def test_another_user_can_neither_stop_nor_redirect_it(owned: tuple[Machine, Gateway]) -> None:
    machine, gateway = owned
    [written] = (machine.data / "run").glob("gateway.json")
    pid = json.loads(written.read_text("utf-8"))["pid"]
    assert as_nobody("kill", str(pid)).returncode != 0
    for words in (["rm", "-f", str(written)], ["sh", "-c", f"echo x > {written}"]):
        assert as_nobody(*words).returncode != 0
    assert is_alive(pid)
    # Our commands ignore files of another user, even where that user can write.
    os.chown(written, NOBODY, NOBODY)
    try:
        assert machine.here().json("gateway", "status", code=1) == {"running": False}
    finally:
        os.chown(written, 0, 0)
    assert machine.here().json("gateway", "status")["url"] == gateway.url


def test_with_the_token_another_user_is_allowed(owned: tuple[Machine, Gateway]) -> None:
    machine, gateway = owned
    env = machine.here().json("gateway", "env")
    assert env["url"] == gateway.url
    assert statuses_for_nobody(gateway, env["token"]) <= {200, 400, 404, 405, 406}
    lines = machine.here().run("gateway", "env").stdout.splitlines()
    assert lines == [
        f"export TOOLSCRIPT_GATEWAY_URL={env['url']}",
        f"export TOOLSCRIPT_GATEWAY_TOKEN={env['token']}",
    ]


def test_the_owner_needs_no_token_for_a_plain_request(owned: tuple[Machine, Gateway]) -> None:
    """A request like that of `curl`, without extra headers."""
    curl = shutil.which("curl")
    url = f"{owned[1].url}/search?q=add+two+numbers"
    fetch = [curl, "-sS", url] if curl else [sys.executable, "-c", _FETCH, url]
    done = subprocess.run(fetch, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"][0]["toolId"] == "plain__add"


_FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


def test_the_owner_needs_no_token_for_the_generated_module(owned: tuple[Machine, Gateway]) -> None:
    module = owned[1].ask("/runtime/tools.ts", params={"filter": "plain"}).text
    program = 'console.log(JSON.stringify(await tools.plain.add({ "a": 2, "b": 40 })));'
    assert json.loads(run_client_under_deno(owned[1].url, module, program)) == {"sum": 42}


async def test_the_owner_needs_no_token_for_an_http_client_entry(owned: tuple[Machine, Gateway]) -> None:
    async with Client(f"{owned[1].url}/mcp") as client:
        called = await client.call_tool("call_tool", {"tool": "plain__add", "arguments": {"a": 2, "b": 40}})
        assert called.structured_content == {"sum": 42}


def test_the_token_stays_over_a_restart_and_two_gateways_share_it(machine: Machine) -> None:
    """Clients store it in their configs."""
    machine.configure({})
    with machine.gateway():
        first = machine.here().json("gateway", "env")["token"]
    with machine.gateway():
        assert machine.here().json("gateway", "env")["token"] == first
    assert len(first) >= 32


def test_commands_that_are_given_an_address_show_the_token_of_that_gateway_alone(
    owned: tuple[Machine, Gateway],
) -> None:
    """The token is not sent to an address of another process."""
    from toolscript.gateway.record import token_at

    machine, gateway = owned
    run = machine.data / "run"
    assert token_at(run, gateway.url) == token_at(run, gateway.url + "/") != ""
    assert token_at(run, "http://127.0.0.1:1") == ""
