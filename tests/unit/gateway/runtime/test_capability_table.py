"""The capability table of the user."""

from pathlib import Path

import pytest

from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.capabilities import default_capabilities
from toolscript.gateway.runtime import _capabilities
from toolscript.gateway.settings import GatewaySettings

pytestmark = pytest.mark.requirement("TS-004")


def settings_in(folder: Path) -> GatewaySettings:
    return GatewaySettings(data_dir=str(folder))


def test_without_an_own_table_the_default_capabilities_are_used(tmp_path: Path) -> None:
    assert _capabilities(settings_in(tmp_path)) is default_capabilities()


def test_a_table_in_the_data_folder_replaces_the_default(tmp_path: Path) -> None:
    (tmp_path / "capabilities.toml").write_text("[general]\n[capability]\n")
    assert _capabilities(settings_in(tmp_path)).general == ()


@pytest.mark.parametrize("content", [b"[general", b"\xff\xfe", b""])
def test_an_unreadable_table_is_named(tmp_path: Path, content: bytes) -> None:
    own = tmp_path / "capabilities.toml"
    own.write_bytes(content)
    with pytest.raises(ConfigInvalid) as refused:
        _capabilities(settings_in(tmp_path))
    assert str(own) in refused.value.message
    assert refused.value.hint
