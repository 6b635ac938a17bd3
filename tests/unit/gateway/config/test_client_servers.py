"""Servers of other clients' files, converted to our format."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gateway.config.builders import NODE, write
from tests.unit.gateway.config.test_jsonc import JSON
from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.clients import Client, ClientConfig, FoundServer, Layout, read_client, read_clients
from toolscript.gateway.config.entries import KEYS

pytestmark = pytest.mark.requirement("TS-001")


def found_in(tmp_path: Path, value: object, layout: Layout, client: Client = Client.CURSOR) -> list[FoundServer]:
    name = "config.toml" if layout is Layout.CODEX else "mcp.json"
    return read_client(ClientConfig(client, write(tmp_path / name, value), layout, tmp_path))


def entry_of(tmp_path: Path, raw: dict[str, object], client: Client = Client.CURSOR) -> dict[str, object]:
    [server] = found_in(tmp_path, {"mcpServers": {"a": raw}}, Layout.MCP_SERVERS, client)
    assert server.skip == ""
    return dict(server.entry)


@pytest.mark.parametrize(
    ("value", "layout"),
    [
        ({"mcpServers": {"a": NODE}}, Layout.MCP_SERVERS),
        ({"servers": {"a": NODE}, "inputs": []}, Layout.SERVERS),
        ({"mcp": {"servers": {"a": NODE}}, "editor.fontSize": 12}, Layout.SETTINGS),
        ({"mcp.servers": {"a": NODE}}, Layout.SETTINGS),
        ('// settings\n{"mcp": {"servers": {"a": {"command": "node",}}}}', Layout.SETTINGS),
        ('[mcp_servers.a]\ncommand = "node"\n', Layout.CODEX),
    ],
)
def test_found_serversare_read_from_each_clients_section(tmp_path: Path, value: object, layout: Layout) -> None:
    assert [(server.name, server.entry) for server in found_in(tmp_path, value, layout)] == [("a", NODE)]


def test_claude_code_has_found_serversof_the_user_and_of_this_project_only(tmp_path: Path) -> None:
    projects = {str(tmp_path): {"mcpServers": {"mine": NODE}}, "/other": {"mcpServers": {"theirs": NODE}}}
    found_servers = found_in(tmp_path, {"mcpServers": {"user": NODE}, "projects": projects}, Layout.CLAUDE_CODE)
    assert [(server.name, server.source.of_project) for server in found_servers] == [
        ("user", False),
        ("mine", True),
    ]


def test_variables_become_references_in_our_syntax(tmp_path: Path) -> None:
    raw = {"command": "${env:BIN}/x", "args": ["${A}", "${B:-c}"], "env": {"T": "${env:T}"}}
    expected = {"command": "${BIN}/x", "args": ["${A}", "${B:-c}"], "env": {"T": "${T}"}}
    assert entry_of(tmp_path, dict(raw)) == expected


def test_an_input_becomes_a_variable_to_set(tmp_path: Path) -> None:
    raw = {"url": "https://h", "headers": {"Authorization": "Bearer ${input:api-key}"}}
    [server] = found_in(
        tmp_path, {"servers": {"a": raw}, "inputs": [{"id": "api-key"}]}, Layout.SERVERS, Client.VS_CODE
    )
    assert server.entry["headers"] == {"Authorization": "Bearer ${API_KEY}"}
    assert server.notes == ("set API_KEY, which was the input 'api-key'",)
    assert server.secrets == 0


def test_secrets_are_imported_unchanged_and_counted(tmp_path: Path) -> None:
    raw = {"command": "x", "env": {"GITHUB_TOKEN": "ghp_abc", "OTHER_KEY": "k", "SAFE": "${SAFE_TOKEN}"}}
    [server] = found_in(tmp_path, {"mcpServers": {"a": raw}}, Layout.MCP_SERVERS)
    assert server.entry == raw
    assert server.secrets == 2
    assert "ghp_abc" not in repr(server)


def test_empty_keys_and_redundant_types_are_dropped(tmp_path: Path) -> None:
    assert entry_of(tmp_path, {"command": "x", "type": "stdio", "args": [], "env": {}, "disabled": False}) == {
        "command": "x"
    }
    assert entry_of(tmp_path, {"url": "http://h/mcp", "type": "streamable-http"}) == {"url": "http://h/mcp"}
    assert entry_of(tmp_path, {"url": "http://h/mcp", "type": "sse"}) == {"url": "http://h/mcp", "type": "sse"}
    assert entry_of(tmp_path, {"command": "x", "enabled": False}) == {"command": "x", "disabled": True}


def test_unknown_keys_are_dropped_and_reported(tmp_path: Path) -> None:
    raw = {"command": "x", "envFile": ".env", "gallery": True, "auth": {}}
    [server] = found_in(tmp_path, {"mcpServers": {"a": raw}}, Layout.MCP_SERVERS)
    assert server.entry == {"command": "x"}
    assert server.notes == ("without auth, envFile",)


def test_a_timeout_is_imported_only_if_its_unit_is_known(tmp_path: Path) -> None:
    raw: dict[str, object] = {"command": "x", "timeout": 120_000}
    assert entry_of(tmp_path, raw, Client.CLAUDE_CODE)["callTimeout"] == 120
    assert "callTimeout" not in entry_of(tmp_path, raw, Client.CURSOR)


CODEX = """
model = "o5"
[mcp_servers.local]
command = "npx"
args = ["-y", "pkg", "${literal}"]
cwd = "sub"
env = { A = "1" }
env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
enabled_tools = ["read"]
disabled_tools = ["write"]
startup_timeout_sec = 20
tool_timeout_sec = 90.5
[mcp_servers.web]
url = "https://h/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { X-Region = "eu" }
env_http_headers = { X-Key = "WEB_KEY" }
enabled = false
startup_timeout_ms = 1500
[mcp_servers.none]
command = "x"
enabled_tools = []
"""


def test_codex_found_serversare_imported_completely(tmp_path: Path) -> None:
    local, web, none = (dict(server.entry) for server in found_in(tmp_path, CODEX, Layout.CODEX, Client.CODEX))
    assert local == {
        "command": "npx",
        "args": ["-y", "pkg", "$${literal}"],
        "cwd": "sub",
        "env": {"A": "1", "TOKEN": "${TOKEN}", "OTHER": "${OTHER}"},
        "includeTools": ["read"],
        "excludeTools": ["write"],
        "startupTimeout": 20,
        "callTimeout": 90.5,
    }
    assert web == {
        "url": "https://h/mcp",
        "headers": {"X-Region": "eu", "X-Key": "${WEB_KEY}", "Authorization": "Bearer ${WEB_TOKEN}"},
        "startupTimeout": 1.5,
        "disabled": True,
    }
    assert none == {"command": "x", "excludeTools": ["*"]}


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "toolscript", "args": ["mcp"]},
        {"command": "/opt/bin/toolscript", "args": ["--config", "x", "mcp"]},
        {"command": "C:\\bin\\toolscript.exe", "args": ["mcp"]},
        {"command": "uvx", "args": ["toolscript", "mcp"]},
        {"command": "uvx", "args": ["toolscript[gpu]==0.2", "mcp"]},
        {"command": "uv", "args": ["run", "--with", "x", "toolscript@latest", "mcp"]},
        {"command": "python3", "args": ["-m", "toolscript", "mcp"]},
    ],
)
def test_our_own_entry_is_never_imported(tmp_path: Path, raw: dict[str, object]) -> None:
    [server] = found_in(tmp_path, {"mcpServers": {"anything": raw}}, Layout.MCP_SERVERS)
    assert server.skip == "is Toolscript itself"


def test_our_own_http_entry_is_recognised_by_name_and_host(tmp_path: Path) -> None:
    servers = {"toolscript": {"url": "http://127.0.0.1:1/mcp"}, "other": {"url": "http://127.0.0.1:2/mcp"}}
    found_servers = found_in(tmp_path, {"mcpServers": servers}, Layout.MCP_SERVERS)
    assert [server.skip != "" for server in found_servers] == [True, False]


@pytest.mark.parametrize(
    "raw",
    [
        {"command": "toolscript-linter", "args": ["mcp"]},
        {"command": "toolscript", "args": ["serve"]},
        {"command": "uvx", "args": ["mcp", "toolscript-x"]},
        {"command": "npx", "args": ["-y", "mcp"]},
    ],
)
def test_other_found_serversare_not_mistaken_for_our_own(tmp_path: Path, raw: dict[str, object]) -> None:
    assert entry_of(tmp_path, raw) == raw


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("x", "is not an object"),
        ({}, "neither a command nor a url"),
        ({"command": "x", "url": "http://h"}, "both a command and a url"),
        ({"type": "ws", "url": "ws://h"}, "type that is unknown"),
        ({"command": "x", "args": "y"}, "args is not a list"),
    ],
)
def test_an_invalid_server_is_skipped_with_the_reason(tmp_path: Path, raw: object, reason: str) -> None:
    [server] = found_in(tmp_path, {"mcpServers": {"a": raw}}, Layout.MCP_SERVERS)
    assert reason in server.skip


@pytest.mark.parametrize(
    "url", ["${BASE}/mcp", "https://${HOST}/mcp", "http://h:${PORT}/mcp", "https://h/${PATH}"]
)
def test_a_url_with_variables_is_imported_unchanged(tmp_path: Path, url: str) -> None:
    assert entry_of(tmp_path, {"url": url}) == {"url": url}


@pytest.mark.parametrize(
    ("name", "text", "layout"),
    [
        ("mcp.json", "{", Layout.MCP_SERVERS),
        ("mcp.json", "[]", Layout.SERVERS),
        ("config.toml", "a = hunter2", Layout.CODEX),
    ],
)
def test_an_unreadable_file_is_reported_and_the_others_are_read(
    tmp_path: Path, name: str, text: str, layout: Layout
) -> None:
    broken = ClientConfig(Client.CODEX, write(tmp_path / name, text), layout, tmp_path)
    good = ClientConfig(
        Client.CURSOR, write(tmp_path / "good.json", {"mcpServers": {"a": NODE}}), Layout.MCP_SERVERS, tmp_path
    )
    with pytest.raises(ConfigInvalid):
        read_client(broken)
    found_servers, problems = read_clients([broken, good])
    assert [server.name for server in found_servers] == ["a"]
    assert [problem.file for problem in problems] == [broken.path]
    assert "hunter2" not in str(problems[0])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.dictionaries(st.text(), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5) | JSON, max_size=3))
def test_any_json_of_a_client_is_read_or_skipped(tmp_path: Path, servers: dict[str, object]) -> None:
    found_servers = found_in(tmp_path, {"mcpServers": servers}, Layout.MCP_SERVERS)
    assert [server.name for server in found_servers] == list(servers)
    assert all(server.secrets >= 0 for server in found_servers)
