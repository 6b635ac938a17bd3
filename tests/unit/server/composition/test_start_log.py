"""What `serve` logs at its start: its address, what is on, and what would turn on the rest."""

import os

import pytest

from tests.unit.server.http.captured_logs import lines, logged
from toolscript.core.settings.service import Settings
from toolscript.server.serve import log_what_is_served


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLSCRIPT_")]:
        monkeypatch.delenv(name)


def start_log(**settings: str) -> list[str]:
    with logged() as output:
        log_what_is_served(Settings(**settings), 8123)  # type: ignore[arg-type]
    return [str(line["event"]) for line in lines(output)]


def test_what_is_off_is_named_with_the_settings_that_turn_it_on() -> None:
    assert start_log() == [
        "starting at http://127.0.0.1:8123",
        "documents: off; TOOLSCRIPT_JWT_KEYS and TOOLSCRIPT_JWT_ISSUER turn them on",
        "knowledge: off; TOOLSCRIPT_MONGO_URL turns it on",
        "worker: on",
        "public, without a token: knowledge:read",
        "writes over HTTP: off; TOOLSCRIPT_ADMIN_TOKEN or TOOLSCRIPT_SOCKET turns them on",
    ]


def test_what_is_on_is_named_without_its_secrets() -> None:
    log = start_log(
        host="::1",
        jwt_keys="keys.json",
        jwt_issuer="me",
        mongo_url="mongodb://u:hunter2@db",
        admin_token="hunter2",
        socket="/run/admin.sock",
        public_scopes="",
        serve_worker="false",
    )
    assert log == [
        "starting at http://[::1]:8123",
        "documents: on",
        "knowledge: on",
        "worker: off; `toolscript worker` indexes the tools, or TOOLSCRIPT_SERVE_WORKER=true turns it on",
        "public, without a token: nothing",
        "writes over HTTP: on, with the admin token and over /run/admin.sock",
    ]


@pytest.mark.parametrize(("token", "on"), [("", "from this machine (development)"), ("t", "with the admin token")])
def test_development_without_a_token_admits_this_machine(token: str, on: str) -> None:
    assert start_log(environment="development", admin_token=token)[-1] == f"writes over HTTP: on, {on}"


@pytest.mark.parametrize(
    ("settings", "public"),
    [
        ({}, "knowledge:read"),
        ({"environment": "development"}, "knowledge:read, tools:read"),
        ({"public_scopes": "tools:read"}, "tools:read"),
        ({"public_scopes": ""}, "nothing"),
    ],
)
def test_tools_are_public_in_production_only_where_a_setting_says_so(
    settings: dict[str, str], public: str
) -> None:
    assert f"public, without a token: {public}" in start_log(**settings)
