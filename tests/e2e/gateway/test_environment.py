"""Environment variables that servers inherit."""

import json

import pytest

from tests.e2e.gateway.machines import Machine, mcp_server

pytestmark = pytest.mark.requirement("TS-001")

USUAL = {
    "HTTPS_PROXY": "http://proxy.example:3128",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/own.pem",
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/own.pem",
    "SSH_AUTH_SOCK": "/run/agent.sock",
    "DISPLAY": ":7",
    "XDG_RUNTIME_DIR": "/run/user/7",
    "UV_CACHE_DIR": "/var/cache/uv",
    "npm_config_cache": "/var/cache/npm",
    "LC_TIME": "de_DE.UTF-8",
}
PRIVATE = {
    "AWS_SECRET_ACCESS_KEY": "s1",
    "GITHUB_TOKEN": "s2",
    "UV_PUBLISH_TOKEN": "s3",
    "npm_config__authToken": "s4",
    "PIP_PASSWORD": "s5",
    "MY_OWN_THING": "s6",
    "MY_OTHER_THING": "s7",
}


def surroundings(machine: Machine) -> dict[str, str]:
    answer = machine.also(**USUAL, **PRIVATE).json("call", "plain__surroundings")
    return dict(json.loads(answer["content"][0]["text"])["env"])


def test_a_server_finds_proxies_certificates_agents_and_display_and_no_secrets(machine: Machine) -> None:
    machine.configure({"plain": mcp_server("plain")})
    seen = surroundings(machine)
    assert {name: seen.get(name) for name in USUAL} == USUAL
    assert PRIVATE.keys() & seen.keys() == set()


def test_an_entry_can_request_more_variables_and_its_own_values_win(machine: Machine) -> None:
    entry = {**mcp_server("plain"), "envPassthrough": ["MY_*"], "env": {"DISPLAY": ":0", "MY_OWN_THING": "mine"}}
    machine.configure({"plain": entry})
    seen = surroundings(machine)
    assert (seen["DISPLAY"], seen["MY_OWN_THING"], seen["MY_OTHER_THING"]) == (":0", "mine", "s7")
    assert "GITHUB_TOKEN" not in seen


@pytest.mark.nightly
def test_a_file_can_request_variables_for_all_its_servers(machine: Machine) -> None:
    machine.write_config(
        json.dumps({"envPassthrough": ["GITHUB_TOKEN"], "mcpServers": {"plain": mcp_server("plain")}})
    )
    assert surroundings(machine)["GITHUB_TOKEN"] == "s2"
    assert machine.run("doctor").stdout.count("CONFIG_WARNING") == 0


def test_an_invalid_list_of_names_is_reported(machine: Machine) -> None:
    machine.configure({"plain": {**mcp_server("plain"), "envPassthrough": "MY_*"}})
    assert "envPassthrough is not a list" in machine.run("doctor", code=2).stdout
