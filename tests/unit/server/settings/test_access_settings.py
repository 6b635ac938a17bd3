"""Where a service can be reached, by which names, and whose word about others it takes."""

import os

import pytest

from toolscript.client.settings import load_client_settings
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.server.access import admin_access, answered_hosts, believed_headers
from toolscript.server.settings import load_settings

pytestmark = pytest.mark.requirement("TR-004")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLSCRIPT_")]:
        monkeypatch.delenv(name)


def test_nobody_is_believed_about_others_unless_named() -> None:
    assert believed_headers(Settings()) == {"proxy_headers": False, "forwarded_allow_ips": []}
    named = Settings(trusted_proxies="10.0.0.0/8, ::1 ,192.168.1.2")
    assert believed_headers(named) == {
        "proxy_headers": True,
        "forwarded_allow_ips": ["10.0.0.0/8", "::1", "192.168.1.2"],
    }


@pytest.mark.parametrize("value", ["*", "localhost", "10.0.0.1/8", "proxy.example"])
def test_a_proxy_that_is_no_address_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TOOLSCRIPT_TRUSTED_PROXIES", value)
    with pytest.raises(SetupError, match="TOOLSCRIPT_TRUSTED_PROXIES"):
        load_settings()


@pytest.mark.parametrize(
    ("host", "allowed", "hosts"),
    [
        ("127.0.0.1", "", ["127.0.0.1"]),
        ("localhost", "a.example, b.example", ["localhost", "a.example", "b.example"]),
        ("0.0.0.0", "", None),
        ("10.1.2.3", "", None),
        ("0.0.0.0", "a.example", ["a.example"]),
    ],
)
def test_names_are_asked_for_on_this_machine_and_wherever_some_are_given(
    host: str, allowed: str, hosts: list[str] | None
) -> None:
    assert answered_hosts(Settings(host=host, allowed_hosts=allowed)) == hosts


def test_this_machine_is_an_administrator_in_development_alone() -> None:
    assert not admin_access(Settings()).development
    assert admin_access(Settings(environment="development")).development


def test_commands_ask_over_the_socket_that_serve_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_SOCKET", "/run/toolscript.sock")
    monkeypatch.setenv("TOOLSCRIPT_PORT", "9")
    assert load_client_settings().address == "unix:/run/toolscript.sock"
    monkeypatch.setenv("TOOLSCRIPT_SERVICE_URL", "http://named:1")
    assert load_client_settings().address == "http://named:1"
