"""tenants keys and token: what to set next."""

from pathlib import Path

from tests.unit.cli.commands import CommandLine


def test_keys_name_both_settings_of_the_service(toolscript: CommandLine, tmp_path: Path) -> None:
    ended = toolscript("tenants", "keys", str(tmp_path / "keys"))
    assert ended.code == 0
    assert "TOOLSCRIPT_JWT_KEYS" in ended.out
    assert "TOOLSCRIPT_JWT_ISSUER" in ended.out


def test_a_token_without_an_issuer_names_the_option(toolscript: CommandLine, tmp_path: Path) -> None:
    toolscript("tenants", "keys", str(tmp_path))
    ended = toolscript("tenants", "token", "acme", "--key", str(tmp_path / "signing-key.json"))
    assert ended.code == 2
    assert "hint: give it with --issuer" in ended.err
