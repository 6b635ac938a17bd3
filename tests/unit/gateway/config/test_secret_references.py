"""`${keyring:NAME}` in a config file, and what a config tells of secrets in clear text."""

from pathlib import Path

import pytest

from tests.unit.gateway.config.builders import errors, only, write
from toolscript.core.errors import SetupError
from toolscript.gateway.config.read import read_config
from toolscript.gateway.config.secrets import places_of_secrets
from toolscript.gateway.config.trust import TrustState
from toolscript.gateway.config.variables import Surroundings, fill, secrets_in, variables_in

pytestmark = pytest.mark.requirement("GW-002")

SECRETS = {"TOKEN": "s3cret", "a.b-c": "${TOKEN} $${", "EMPTY": ""}
HERE = Surroundings({"A": "alpha", "TOKEN": "of the environment"}, Path("/p"), SECRETS.get)
ENTRY = {
    "command": "run",
    "args": ["--key", "${keyring:TOKEN}", "x=${keyring:a.b-c:-none}"],
    "env": {"TOKEN": "Bearer ${keyring:TOKEN}"},
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${keyring:TOKEN}", "s3cret"),
        ("Bearer ${keyring:TOKEN}, ${TOKEN}", "Bearer s3cret, of the environment"),
        ("${keyring:a.b-c}", "${TOKEN} $${"),
        ("${keyring:NO:-${A}}", "alpha"),
        ("${keyring:NO:-${keyring:TOKEN}}", "s3cret"),
        ("${keyring:TOKEN:-x}", "s3cret"),
        ("$${keyring:TOKEN}", "${keyring:TOKEN}"),
    ],
)
def test_secrets_are_filled_in(text: str, filled: str) -> None:
    assert fill(text, HERE) == (filled, [])


def test_a_secret_that_is_not_set_is_named_with_the_command_that_sets_it() -> None:
    _, [finding] = fill("x ${keyring:GITHUB_TOKEN}", HERE)
    assert finding.message == "needs the secret GITHUB_TOKEN, which is not set"
    assert finding.fix == "toolscript secrets set GITHUB_TOKEN"


@pytest.mark.parametrize("name", ["", " TOKEN", "oauth:https://example.org", "a/b", "1", "x" * 65])
def test_what_is_no_name_of_a_secret_is_never_looked_up(name: str) -> None:
    def find(name: str) -> str | None:
        raise AssertionError(name)

    _, [finding] = fill(f"${{keyring:{name}}}", Surroundings({}, Path("/p"), find))
    assert "without the name of a secret" in finding.message


def test_a_keyring_that_cannot_be_used_fails_the_servers_that_need_it(tmp_path: Path) -> None:
    def find(name: str) -> str | None:
        raise SetupError(f"the secret {name} is locked away", hint="unlock it")

    path = write(tmp_path / "c.json", {"mcpServers": {"needs": ENTRY, "other": {"command": "run"}}})
    config = read_config([path], {}, find_secret=find)
    assert [spec.name for spec in config.servers] == ["other"]
    assert {problem.server for problem in errors(config)} == {"needs"}
    assert "the secret TOKEN is locked away" in errors(config)[0].message


def test_a_spec_has_the_secrets_it_was_filled_with_and_never_shows_them(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", {"mcpServers": {"needs": ENTRY}})
    spec = only(read_config([path], {}, find_secret=SECRETS.get))
    assert spec.args == ("--key", "s3cret", "x=${TOKEN} $${")
    assert spec.env == {"TOKEN": "Bearer s3cret"}
    assert spec.secrets == {"TOKEN": "s3cret", "a.b-c": "${TOKEN} $${"}
    assert "s3cret" not in repr(spec)


def test_a_file_that_is_not_trusted_gets_no_secret(tmp_path: Path) -> None:
    asked: list[str] = []
    path = write(tmp_path / "c.json", {"mcpServers": {"needs": ENTRY}})
    config = read_config([path], {}, lambda *_: TrustState.UNKNOWN, find_secret=asked.append)
    assert (config.servers, asked) == ((), [])


def test_without_a_store_no_server_is_started_with_an_empty_value(tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", {"mcpServers": {"needs": ENTRY}})
    assert read_config([path], {}).servers == ()


def test_a_reference_is_no_variable_that_a_client_sends() -> None:
    assert variables_in(ENTRY) == set()
    assert secrets_in(ENTRY) == {"TOKEN", "a.b-c"}


def test_the_places_of_secrets_in_clear_text_are_named() -> None:
    entry = {
        "args": ["--api-key", "abcd1234", "--folder", "/x", "${keyring:TOKEN}"],
        "env": {"GITHUB_TOKEN": "ghp_abc", "OTHER_TOKEN": "${keyring:OTHER_TOKEN}", "LEVEL": "debug"},
        "headers": {"Authorization": "Bearer abc", "X-Auth": "Bearer ${keyring:TOKEN}"},
        "url": "https://example.org/?api_key=abc",
    }
    assert [*places_of_secrets(entry)] == ["env.GITHUB_TOKEN", "headers.Authorization", "args[1]", "url"]
