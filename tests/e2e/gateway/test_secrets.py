"""Secrets from a person's command to a server, and nowhere else. Real processes, and a real Secret Service."""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import command
from tests.e2e.gateway.machines import ROOT, WAIT_SECONDS, Gateway, Machine, mcp_server, new_machine, until
from tests.e2e.terminals import in_a_terminal
from tests.support.secret_service import IS_INSTALLED, MISSING, secret_service

pytestmark = [pytest.mark.requirement("GW-002"), pytest.mark.slow]

# Canaries: never to be seen outside the store.
TOKEN, ARGUMENT = "c4nary-of-the-environment", "c4nary-of-an-argument"
CANARIES = (TOKEN, ARGUMENT)
ENTRY = {"env": {"TOKEN": "Bearer ${keyring:TOKEN}"}}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose commands run in this process."""
    machine = new_machine(tmp_path / "machine", tmp_path)
    return machine.also(TOOLSCRIPT_SEARCH_MODEL="none", NO_PROXY="127.0.0.1").here()


def leaky(how: str = "works") -> dict[str, object]:
    return mcp_server("leaky", how, "${keyring:ARGUMENT}", **ENTRY)


def status(gateway: Gateway, name: str, is_status: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        server = gateway.server(name)
        return server if server.get("status") == is_status else None

    return until(look, f"{name} {is_status}")


def length(gateway: Gateway) -> int:
    """0 while the server does not answer."""
    content = gateway.call("leaky__measure").json().get("content")
    return int(content[0]["text"]) if content else 0


def test_a_secret_reaches_a_running_server_and_leaves_it_again(machine: Machine) -> None:
    machine.configure({"leaky": leaky()})
    with machine.gateway() as gateway:
        needs = status(gateway, "leaky", "failed")["error"]
        assert "needs the secret" in needs
        assert "toolscript secrets set" in needs
        machine.by_person("secrets", "set", "ARGUMENT", standard_input=ARGUMENT)
        machine.by_person("secrets", "set", "TOKEN", standard_input=f"{TOKEN}\n")
        status(gateway, "leaky", "ready")
        before = length(gateway)
        assert before == len(f"Bearer {TOKEN} {ARGUMENT}")
        machine.by_person("secrets", "set", "TOKEN", standard_input=f"{TOKEN}, which is longer now\n")
        until(lambda: length(gateway) > before, "the new value")
        machine.by_person("secrets", "remove", "TOKEN")
        assert "needs the secret TOKEN" in status(gateway, "leaky", "failed")["error"]


def test_nothing_that_the_gateway_shows_or_writes_has_a_secret(machine: Machine) -> None:
    machine = machine.also(TOOLSCRIPT_GATEWAY_ACTIVITY="arguments")
    machine.by_person("secrets", "set", "ARGUMENT", standard_input=ARGUMENT)
    machine.by_person("secrets", "set", "TOKEN", standard_input=TOKEN)
    machine.configure({"leaky": leaky(), "dies": leaky("dies"), "noisy": leaky("noisy")})
    outputs = [machine.run("secrets", "list", "--json").stdout]
    with machine.gateway() as gateway:
        outputs += [str(status(gateway, "leaky", "ready"))]
        outputs += [str(status(gateway, name, "failed")) for name in ("dies", "noisy")]
        outputs += [gateway.call(f"leaky__{tool}", note=f"with {TOKEN}").text for tool in ("measure", "refuse")]
        outputs += [gateway.ask(path).text for path in ("/health", "/servers", "/tools", "/activity")]
        outputs += [str(gateway.search("token"))]
        outputs += [output_of(machine, *words) for words in (("list-servers",), ("activity",))]
    outputs += [output_of(machine, "doctor", "--json")]
    # What servers said is for people, and masked there too.
    outputs += [machine.on_a_terminal("doctor", code=2)]
    assert "***" in outputs[-1]
    assert [canary for canary in CANARIES if canary[:12] in "".join(outputs)] == []
    assert files_with_canaries(machine) == [machine.data / "secrets" / "secrets.json"]


def output_of(machine: Machine, *words: str) -> str:
    """Return all that a command prints, whatever it finds."""
    own = machine.whole_environment()
    done = subprocess.run(
        command(*words), env=own, cwd=machine.project, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def files_with_canaries(machine: Machine) -> list[Path]:
    files = [path for path in machine.folder.rglob("*") if path.is_file()]
    return [path for path in files if any(canary.encode()[:12] in path.read_bytes() for canary in CANARIES)]


def test_a_projects_file_gets_a_secret_once_a_person_trusts_it(machine: Machine) -> None:
    machine.by_person("secrets", "set", "TOKEN", standard_input=TOKEN)
    seen = machine.folder / "seen"
    words = ["-c", f"import os; open({str(seen)!r}, 'w').write(os.environ['TOKEN'])"]
    entry = {"command": "python3", "args": words, "env": {"TOKEN": "${keyring:TOKEN}"}}
    (machine.project / ".toolscript.json").write_text(json.dumps({"mcpServers": {"project": entry}}), "utf-8")
    machine.run("list-servers", "--alone", code=1)
    assert not seen.exists()
    assert "your secrets TOKEN" in machine.by_person("trust", "--yes").stderr
    machine.run("list-servers", "--alone", code=1)
    assert seen.read_text("utf-8") == TOKEN


def test_a_person_types_a_secret_unseen(machine: Machine) -> None:
    with in_a_terminal(machine.whole_environment(), machine.project, "secrets", "set", "TOKEN") as terminal:
        terminal.expect("TOKEN: ")
        terminal.type(TOKEN)
        assert terminal.ended() == 0
    assert TOKEN not in terminal.shown
    assert f"TOKEN is in {machine.data}" in terminal.shown
    assert json.loads((machine.data / "secrets" / "secrets.json").read_text("utf-8")) == {"TOKEN": TOKEN}


def test_the_commands_say_what_there_is_and_what_to_do(machine: Machine) -> None:
    place = str(machine.data / "secrets" / "secrets.json")
    assert machine.json("secrets", "list", code=1) == {"secrets": []}
    machine.by_person("secrets", "set", "B", standard_input="x\r\n")
    done = machine.by_person("secrets", "set", "A.b-c", standard_input="two\nlines\n")
    assert "${keyring:A.b-c}" in done.stderr
    assert machine.json("secrets", "list") == {
        "secrets": [{"name": "A.b-c", "place": place}, {"name": "B", "place": place}]
    }
    assert json.loads(Path(place).read_text("utf-8")) == {"B": "x", "A.b-c": "two\nlines"}
    assert machine.by_person("secrets", "remove", "B").stdout == "removed B\n"
    assert "`toolscript secrets list`" in machine.by_person("secrets", "remove", "B", code=2).stderr
    for words in (("set", "oauth:x"), ("remove", "oauth:x"), ("set", "a b")):
        assert "a name is" in machine.by_person("secrets", *words, code=2, standard_input="x").stderr
    assert "cannot be kept" in machine.by_person("secrets", "set", "EMPTY", code=2, standard_input="\n").stderr
    # A value is never an argument: others see those of a process.
    machine.by_person("secrets", "set", "C", "value", code=2)


def test_doctor_says_how_to_move_a_secret_out_of_a_config_file(machine: Machine) -> None:
    machine.configure({"leaky": mcp_server("leaky", "works", "--api-key", TOKEN, env={"GITHUB_TOKEN": ARGUMENT})})
    output = output_of(machine, "doctor")
    assert "2 secrets are in clear text" in output
    assert "leaky (env.GITHUB_TOKEN), leaky (args[4])" in output
    assert "`toolscript secrets set GITHUB_TOKEN`, then write ${keyring:GITHUB_TOKEN}" in output
    assert [canary for canary in CANARIES if canary in output] == []


@pytest.fixture
def bus() -> Iterator[Path]:
    """Return a folder with a short path, which sockets need."""
    with tempfile.TemporaryDirectory(prefix="ts-") as folder:
        yield Path(folder) / "bus"


@pytest.mark.skipif(not IS_INSTALLED, reason=MISSING)
def test_a_real_keyring_has_the_secret_and_a_locked_one_is_said_to_be_locked(machine: Machine, bus: Path) -> None:
    machine = machine.also(PYTHON_KEYRING_BACKEND="keyring.backends.SecretService.Keyring")
    machine.configure({"leaky": mcp_server("leaky", "works", **ENTRY)})
    with secret_service(bus) as variables:
        open_to_us = machine.also(**variables)
        open_to_us.by_person("secrets", "set", "TOKEN", standard_input=TOKEN)
        [secret] = open_to_us.json("secrets", "list")["secrets"]
        assert secret["place"].startswith("the system keyring")
        with open_to_us.gateway() as gateway:
            status(gateway, "leaky", "ready")
            assert length(gateway) == len(f"Bearer {TOKEN}")
        assert files_with_canaries(machine) == []
    with secret_service(bus, locked=True) as variables:
        # The library leaves its connection to a locked keyring open: in processes of their own.
        locked = replace(machine.also(**variables), runs_here=False)
        [server] = locked.json("list-servers", "--alone", code=1)["servers"]
        assert "the secret TOKEN is in the system keyring, which cannot be used: it is locked" in server["error"]
        place = locked.by_person("secrets", "set", "TOKEN", "--json", standard_input=TOKEN).stdout
        assert json.loads(place)["place"] == str(machine.data / "secrets" / "secrets.json")
        [server] = locked.json("list-servers", "--alone")["servers"]
        assert server["status"] == "ready"


def test_a_gateway_that_starts_before_its_keyring_is_unlocked_tries_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keyring = tmp_path / "keyring"
    keyring.mkdir()
    machine = machine.also(
        PYTHON_KEYRING_BACKEND="tests.support.lockable_keyring.Keyring",
        LOCKABLE_KEYRING=str(keyring),
        PYTHONPATH=str(ROOT),
    )
    machine.configure({"leaky": mcp_server("leaky", "works", **ENTRY)})
    machine.by_person("secrets", "set", "TOKEN", standard_input=TOKEN)
    (keyring / "locked").touch()
    for name, value in machine.whole_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("toolscript.gateway.following.KEYRING_RETRY_SECONDS", 0.05)
    monkeypatch.setattr("toolscript.gateway.system_keyring.RETRY_SECONDS", 0.05)
    asyncio.run(_unlock_while_it_runs(keyring / "locked"))


async def _unlock_while_it_runs(lock: Path) -> None:
    from toolscript.gateway.following import open_following
    from toolscript.gateway.settings import load_gateway_settings

    async with asyncio.timeout(WAIT_SECONDS), open_following(load_gateway_settings()) as resources:
        [locked] = await resources.gateway.servers()
        assert "which cannot be used" in locked.error
        lock.unlink()  # noqa: ASYNC240 - one local file
        revision = -1
        while [state.status for state in await resources.gateway.servers()] != ["ready"]:
            revision = await resources.servers.changed(revision)
