"""The address of a service: flag before environment variable before the default of `serve`."""

import os

import pytest

from toolscript.client.settings import load_client_settings
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLSCRIPT_")]:
        monkeypatch.delenv(name)


def test_without_settings_the_address_is_the_default_of_serve() -> None:
    default = Settings()
    assert load_client_settings().address == f"http://{default.host}:{default.port}"


def test_a_flag_beats_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_SERVICE_URL", " http://named:1 ")
    monkeypatch.setenv("TOOLSCRIPT_PORT", "9")
    assert load_client_settings({"service_url": None}).address == "http://named:1"
    assert load_client_settings({"service_url": "http://told:2"}).address == "http://told:2"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:9"),
        ("0.0.0.0", "http://127.0.0.1:9"),
        ("::", "http://127.0.0.1:9"),
        ("::1", "http://[::1]:9"),
        ("10.1.2.3", "http://10.1.2.3:9"),
        ("search.example", "http://search.example:9"),
    ],
)
def test_the_address_follows_the_settings_of_serve(
    monkeypatch: pytest.MonkeyPatch, host: str, address: str
) -> None:
    monkeypatch.setenv("TOOLSCRIPT_HOST", host)
    monkeypatch.setenv("TOOLSCRIPT_PORT", "9")
    assert load_client_settings().address == address


@pytest.mark.parametrize("port", ["hunter2", "-1", "123456", "8o8o", "٣"])
def test_a_port_that_is_none_is_named_and_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("TOOLSCRIPT_PORT", port)
    with pytest.raises(SetupError, match="TOOLSCRIPT_PORT cannot be used") as refused:
        _ = load_client_settings().address
    assert port not in refused.value.message
