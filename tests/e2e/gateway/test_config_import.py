"""Servers of other clients are imported, and then searched."""

import json
from pathlib import Path

import pytest

from tests.e2e.gateway.catalogs import TOOLS, catalog_servers, write_catalog
from tests.e2e.gateway.machines import Machine

pytestmark = pytest.mark.requirement("TS-001")

SECRET = "sk-very-secret"
TAKEN_OVER = ["calendar", "database", "filesystem", "mail", "weather"]


@pytest.fixture
def person(machine: Machine) -> Machine:
    """Return a machine with Claude Desktop, Claude Code, Cursor, VS Code and Codex, with a server in each."""
    catalog = write_catalog(machine.folder / "tools.jsonl", TOOLS)
    servers = catalog_servers(catalog, TAKEN_OVER)
    for path, section, name in (
        (".config/Claude/claude_desktop_config.json", "mcpServers", "filesystem"),
        (".claude.json", "mcpServers", "mail"),
        (".cursor/mcp.json", "mcpServers", "weather"),
        (".config/Code/User/mcp.json", "servers", "calendar"),
    ):
        entry = {**_entry(servers, name), "env": {"API_KEY": SECRET}}
        _write(machine.home / path, json.dumps({section: {name: entry}}))
    codex = _entry(servers, "database")
    lines = [f"{key} = {json.dumps(value)}" for key, value in codex.items()]
    _write(machine.home / ".codex/config.toml", "\n".join(["[mcp_servers.database]", *lines]))
    return machine.here()


def _entry(servers: object, name: str) -> dict[str, object]:
    assert isinstance(servers, dict)
    return dict(servers[name])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def test_a_preview_shows_every_server_and_no_secret_and_writes_nothing(person: Machine) -> None:
    done = person.run("config", "import", "--dry-run")
    assert all(name in done.stdout for name in (*TAKEN_OVER, "Claude Desktop", "Cursor", "VS Code", "Codex"))
    assert SECRET not in done.stdout + done.stderr
    assert "nothing written" in done.stdout
    assert not person.config.exists()


def test_in_a_pipe_only_yes_writes(person: Machine) -> None:
    assert "--yes writes" in person.run("config", "import").stdout
    assert "--yes writes" in person.run("config", "connect", "cursor").stdout
    assert "--yes" not in person.run("config", "import", "--dry-run").stdout
    assert person.json("config", "import")["written"] == []
    assert not person.config.exists()


def test_imported_servers_can_be_searched_and_called_at_once(person: Machine) -> None:
    report = person.json("config", "import", "--yes")
    assert sorted(report["written"]) == TAKEN_OVER
    assert SECRET not in json.dumps(report)
    written = json.loads(person.config.read_text("utf-8"))["mcpServers"]
    assert sorted(written) == TAKEN_OVER
    assert written["mail"]["env"] == {"API_KEY": SECRET}
    result = person.json("search", "send an e-mail message")
    assert result["results"][0]["toolId"] == "mail__send_email"
    assert result["semantic"] is True
    called = person.json("call", "database__query", '{"sql": "SELECT 1"}')
    assert called["structuredContent"] == {"sql": "SELECT 1"}
    assert person.json("config", "import", "--yes")["written"] == []


def test_one_client_can_be_selected_and_another_file_written(person: Machine) -> None:
    target = person.folder / "mine.json"
    report = person.json("config", "import", "cursor", "--to", str(target), "--yes")
    assert report["written"] == ["weather"]
    assert not person.config.exists()
    result = person.json("search", "weather forecast for a city", "--config", str(target))
    assert result["results"][0]["toolId"] == "weather__get_forecast"


def test_a_machine_without_clients_gets_a_message(machine: Machine) -> None:
    done = machine.run("config", "import", "--yes", code=1)
    assert "no other client's servers were found" in done.stdout
    assert f"Cursor: {machine.home / '.cursor' / 'mcp.json'}" in done.stderr
    assert "add --project" in done.stderr
    assert f"write {machine.config} yourself" in done.stderr
    assert "no client is called 'emacs'" in machine.run("config", "import", "emacs", code=2).stderr


def test_the_example_of_an_import_without_clients_is_a_config_file(machine: Machine) -> None:
    output = machine.run("config", "import", code=1).stderr
    machine.write_config(output[output.index("\n{\n") :].replace("npx", "no-such-program"))
    assert list(json.loads(machine.config.read_text("utf-8"))["mcpServers"]) == ["files"]
    assert [server["name"] for server in machine.json("list-servers", code=1)["servers"]] == ["files"]


def test_an_import_without_clients_names_the_searched_files_as_json(machine: Machine) -> None:
    report = machine.json("config", "import", "cursor", "--project", code=1)
    own, project = machine.home / ".cursor" / "mcp.json", machine.project / ".cursor" / "mcp.json"
    assert (report["written"], report["searched"]) == ([], [str(own), str(project)])
