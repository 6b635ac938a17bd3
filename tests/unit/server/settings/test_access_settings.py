"""Addresses and host names of a service, and its trusted proxies."""

import os

import pytest

from toolscript.client.settings import load_client_settings
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.server.access import admin_access, allowed_hosts_of, trusted_proxy_options
from toolscript.server.settings import load_settings

pytestmark = pytest.mark.requirement("TR-004")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLSCRIPT_")]:
        monkeypatch.delenv(name)


def test_no_proxy_is_trusted_unless_configured() -> None:
    assert trusted_proxy_options(Settings()) == {"proxy_headers": False, "forwarded_allow_ips": []}
    named = Settings(trusted_proxies="10.0.0.0/8, ::1 ,192.168.1.2")
    assert trusted_proxy_options(named) == {
        "proxy_headers": True,
        "forwarded_allow_ips": ["10.0.0.0/8", "::1", "192.168.1.2"],
    }


@pytest.mark.parametrize("value", ["*", "localhost", "10.0.0.1/8", "proxy.example"])
def test_an_invalid_proxy_address_is_refused_at_startup(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
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
def test_host_names_are_checked_on_loopback_and_wherever_some_are_configured(
    host: str, allowed: str, hosts: list[str] | None
) -> None:
    assert allowed_hosts_of(Settings(host=host, allowed_hosts=allowed)) == hosts


def test_loopback_is_an_administrator_in_development_only() -> None:
    assert not admin_access(Settings()).development
    assert admin_access(Settings(environment="development")).development


def test_commands_use_the_socket_of_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_SOCKET", "/run/toolscript.sock")
    monkeypatch.setenv("TOOLSCRIPT_PORT", "9")
    assert load_client_settings().address == "unix:/run/toolscript.sock"
    monkeypatch.setenv("TOOLSCRIPT_SERVICE_URL", "http://named:1")
    assert load_client_settings().address == "http://named:1"
