"""Settings about tenants: those for development are refused in production."""

import pytest

from toolscript.core.errors import SetupError
from toolscript.core.settings.service import Settings
from toolscript.server.settings import load_settings

pytestmark = pytest.mark.requirement("DOC-004")


def given(monkeypatch: pytest.MonkeyPatch, **names: str) -> Settings:
    for name, value in names.items():
        monkeypatch.setenv(f"TOOLSCRIPT_{name.upper()}", value)
    return load_settings()


def test_access_is_closed_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = given(monkeypatch)
    assert (settings.environment, settings.debug_bypass_auth, settings.jwt_keys) == ("production", False, "")


@pytest.mark.parametrize("environment", [{}, {"environment": "production"}])
def test_the_debug_bypass_is_refused_in_production(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    with pytest.raises(SetupError, match="TOOLSCRIPT_DEBUG_BYPASS_AUTH is for TOOLSCRIPT_ENVIRONMENT=development"):
        given(monkeypatch, debug_bypass_auth="true", **environment)


def test_the_debug_bypass_is_allowed_in_development(monkeypatch: pytest.MonkeyPatch) -> None:
    assert given(monkeypatch, debug_bypass_auth="1", environment="development").debug_bypass_auth


def test_an_environment_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="TOOLSCRIPT_ENVIRONMENT"):
        given(monkeypatch, environment="prod")


def test_keys_need_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"^TOOLSCRIPT_JWT_KEYS needs TOOLSCRIPT_JWT_ISSUER$") as refused:
        given(monkeypatch, jwt_keys="keys.json")
    assert refused.value.hint.startswith("set TOOLSCRIPT_JWT_ISSUER")
    assert (
        given(monkeypatch, jwt_keys="keys.json", jwt_issuer="https://issuer.example").jwt_audience == "toolscript"
    )
