"""Settings of the gateway: flag beats environment beats default."""

import os
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway.settings import GatewaySettings, gateway_setting_fields, load_gateway_settings

pytestmark = pytest.mark.requirement("TS-002")

# A non-default value for each.
GIVEN: dict[str, tuple[str, object]] = {
    "search_limit": ("7", 7),
    "search_threshold": ("0.5", 0.5),
    "search_model": ("some/model", "some/model"),
    "search_alpha": ("0", 0.0),
    "search_type": ("Semantic", "semantic"),
    "search_no_cache": ("yes", True),
    "search_device": ("CPU", "cpu"),
    "data_dir": ("/data", "/data"),
    "config": ("/config.json", "/config.json"),
    "gateway_url": ("http://localhost:1", "http://localhost:1"),
    "gateway_port": ("0", 0),
    "gateway_alone": ("yes", True),
    "gateway_on_demand": ("no", False),
    "gateway_idle_seconds": ("0", 0.0),
    "gateway_token": ("t0ken", "t0ken"),
    "gateway_log_level": ("Debug", "debug"),
    "gateway_activity": ("Arguments", "arguments"),
    "gateway_split_calls": ("yes", True),
    "gateway_approvals": ("Strict", "strict"),
    "gateway_activity_rows": ("2000", 2_000),
    "gateway_activity_megabytes": ("7", 7),
    "text_model": ("some-model", "some-model"),
    "text_url": ("http://localhost:1/v1", "http://localhost:1/v1"),
    "text_api_key": ("s3cret", "s3cret"),
}
BAD = [
    *(("search_limit", value) for value in ("0", "101", "-1", "many", "1.5", "9" * 5000)),
    *(("search_threshold", value) for value in ("1.1", "-0.1", "nan", "inf", "half")),
    *(("search_alpha", value) for value in ("2", "nan", "x")),
    *(("search_type", value) for value in ("literal", "direct")),
    *(("search_no_cache", value) for value in ("maybe", "2")),
    *(("search_device", value) for value in ("tpu", "cuda:0")),
    *(("gateway_port", value) for value in ("-1", "65536", "http")),
    *(("gateway_alone", value) for value in ("maybe",)),
    *(("gateway_on_demand", value) for value in ("2",)),
    *(("gateway_idle_seconds", value) for value in ("-1", "604801", "never", "nan")),
    *(("gateway_log_level", value) for value in ("loud",)),
    *(("gateway_split_calls", value) for value in ("2",)),
    *(("gateway_approvals", value) for value in ("all", "yes")),
    *(("gateway_activity", value) for value in ("all", "yes")),
    *(("gateway_activity_rows", value) for value in ("999", "10000001", "many")),
    *(("gateway_activity_megabytes", value) for value in ("0", "1.5")),
    *(("gateway_token", value) for value in ("ключ", "two\nlines", "tab\there")),
    *(("text_api_key", value) for value in ("ключ", "two\nlines")),
]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOOLSCRIPT_")]:
        monkeypatch.delenv(name)


def test_without_settings_the_defaults_apply() -> None:
    settings = load_gateway_settings()
    assert settings == GatewaySettings()
    assert (settings.search_limit, settings.search_threshold, settings.search_alpha) == (3, 0.35, 0.7)
    assert (settings.search_model, settings.data_dir) == ("Xenova/bge-small-en-v1.5", "~/.toolscript")
    assert settings.data_folder == Path.home() / ".toolscript"


def test_every_setting_is_tried_here() -> None:
    assert set(GIVEN) == {setting.name for setting in gateway_setting_fields()}
    for name, (_, value) in GIVEN.items():
        assert getattr(GatewaySettings(), name) != value


@pytest.mark.parametrize("name", GIVEN)
def test_the_environment_beats_the_default_and_a_flag_beats_both(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, value = GIVEN[name]
    monkeypatch.setenv(f"TOOLSCRIPT_{name.upper()}", f" {text} ")
    read = getattr(load_gateway_settings(), name)
    assert (read, type(read)) == (value, type(value))
    default = getattr(GatewaySettings(), name)
    assert getattr(load_gateway_settings({name: default}), name) == default
    assert getattr(load_gateway_settings({name: None}), name) == value


@pytest.mark.parametrize("name", GIVEN)
def test_an_empty_variable_counts_as_unset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for blank in ("", "  "):
        monkeypatch.setenv(f"TOOLSCRIPT_{name.upper()}", blank)
        assert load_gateway_settings() == GatewaySettings()


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: ascii(value)[:20])
def test_an_invalid_value_is_reported_by_name_without_the_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TOOLSCRIPT_{name.upper()}", value)
    with pytest.raises(SetupError) as refused:
        load_gateway_settings()
    assert f"TOOLSCRIPT_{name.upper()}" in refused.value.message
    assert refused.value.hint
    if len(value) > 3:
        assert value not in f"{refused.value.message} {refused.value.hint}"


def test_a_bad_value_does_not_matter_where_a_flag_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_SEARCH_LIMIT", "many")
    assert load_gateway_settings({"search_limit": 5}).search_limit == 5


def test_the_token_is_not_shown() -> None:
    settings = GatewaySettings(gateway_token="hunter2")
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


@pytest.mark.parametrize(
    ("text", "value"), [("TRUE", True), ("1", True), ("no", False), ("False", False), ("0", False)]
)
def test_yes_and_no_are_read_as_people_write_them(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSCRIPT_SEARCH_NO_CACHE", text)
    assert load_gateway_settings().search_no_cache is value


def test_a_tilde_is_the_persons_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_gateway_settings({"data_dir": "~/x"}).data_folder == tmp_path / "x"
    assert load_gateway_settings({"data_dir": "/x"}).data_folder == Path("/x")
