"""S4 on settings and dependencies: its names beside ours, and the contents of `.env`."""

import os
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from toolscript.core.settings.service import Settings, read_alternative_names
from toolscript.server.settings import load_settings

OURS = {
    "MONGODB_URI": "TOOLSCRIPT_MONGO_URL",
    "QDRANT_URL": "TOOLSCRIPT_QDRANT_URL",
    "EMBEDDING_MODEL": "TOOLSCRIPT_EMBEDDING_MODEL",
}
MONGO, QDRANT, MODEL = "mongodb://one.example:27017/?a=b#c", "http://one.example:6333", "BAAI/bge-small-en-v1.5"
WHOLE = f"""
# where things are
export MONGODB_URI="{MONGO}"
QDRANT_URL={QDRANT}  # ours
embedding_model='{MODEL}'
ENVIRONMENT=development
TOOLSCRIPT_ADMIN_TOKEN=secret
TOOLSCRIPT_HOST=0.0.0.0
ADMIN_TOKEN=secret
nonsense
"""


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*os.environ,):
        if name.startswith("TOOLSCRIPT_") or name in OURS:
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / ".env"
    made.write_text(WHOLE, "utf-8")
    made.chmod(0o600)
    return made


def shown(settings: Settings) -> tuple[str, str, str, str]:
    return (
        settings.mongo_url.get_secret_value(),
        settings.qdrant_url,
        settings.embedding_model,
        settings.environment,
    )


def from_folder(folder: Path) -> tuple[tuple[str, str, str, str], str]:
    """Return the four settings of a `serve` started there, and its log about them."""
    result = read_alternative_names(folder)
    return shown(load_settings(result)), result.told


USUAL = ("", "http://127.0.0.1:6333", "sentence-transformers/all-MiniLM-L6-v2", "production")


@pytest.mark.states("S4-098", "S4-149", "S4-151", "S4-153", "S4-154", "S4-156", "S4-158")
def test_without_anything_the_defaults_hold() -> None:
    assert shown(load_settings()) == USUAL


@pytest.mark.states("S4-213")
def test_settings_are_a_class_of_pydantic_settings() -> None:
    assert (Settings.__name__, issubclass(Settings, BaseSettings)) == ("Settings", True)


@pytest.mark.states("S4-149", "S4-150", "S4-152", "S4-155")
def test_the_names_of_the_document_are_read_and_ours_win(monkeypatch: pytest.MonkeyPatch) -> None:
    received = dict(zip(OURS, (MONGO, QDRANT, MODEL), strict=True))
    for name, value in received.items():
        monkeypatch.setenv(name, value)
    assert shown(load_settings()) == (*received.values(), "production")
    ours = ("mongodb://two.example", "http://two.example:6333", "other")
    for name, value in zip(OURS.values(), ours, strict=True):
        monkeypatch.setenv(name, value)
    assert shown(load_settings()) == (*ours, "production")


@pytest.mark.states("S4-157")
@pytest.mark.parametrize("said", ["local", "development", "staging-7"])
def test_an_environment_of_other_programs_makes_no_client_an_administrator(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setenv("ENVIRONMENT", said)
    assert load_settings().environment == "production"
    assert read_alternative_names().told == ""


@pytest.mark.states("S4-159", "S4-160")
def test_a_file_sets_only_the_addresses_of_engines_and_model(file: Path) -> None:
    result = read_alternative_names(file.parent)
    settings = load_settings(result)
    assert shown(settings) == (MONGO, QDRANT, MODEL, "production")
    assert (settings.admin_token.get_secret_value(), settings.host) == ("", "127.0.0.1")
    assert result.told == "MONGODB_URI, QDRANT_URL, EMBEDDING_MODEL from .env"
    assert shown(load_settings()) == USUAL


def test_the_environment_beats_the_file_whichever_name_it_uses(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QDRANT_URL", "http://two.example:6333")
    monkeypatch.setenv("TOOLSCRIPT_MONGO_URL", "")
    values, output = from_folder(file.parent)
    assert values == ("", "http://two.example:6333", MODEL, "production")
    assert output == "QDRANT_URL from the environment; EMBEDDING_MODEL from .env"


def linked(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.states("S4-160")
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (linked, "it is a symbolic link"),
        (lambda file: file.chmod(0o620), "others can write to it"),
        (lambda file: file.chmod(0o602), "others can write to it"),
        (a_pipe, "it is not a regular file"),
        (lambda file: file.write_text("QDRANT_URL=http://x\n" + "#" * 70_000), "it is too large"),
    ],
)
def test_a_file_that_may_not_be_the_users_own_is_not_read(
    file: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(file)
    assert from_folder(file.parent) == (USUAL, f".env is not used: {reason}")


@pytest.mark.states("S4-160")
def test_a_file_of_another_user_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert from_folder(file.parent) == (USUAL, ".env is not used: it belongs to another user")


@pytest.mark.states("S4-160")
@pytest.mark.parametrize(
    ("credential", "kept"),
    [
        ("TOOLSCRIPT_QDRANT_API_KEY", "QDRANT_URL"),
        ("TOOLSCRIPT_QDRANT_CLIENT_KEY", "QDRANT_URL"),
        ("TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE", "QDRANT_URL"),
        ("TOOLSCRIPT_MONGO_WRITER_URL", "MONGODB_URI"),
    ],
)
def test_a_key_of_the_environment_goes_to_no_address_of_a_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, credential: str, kept: str
) -> None:
    monkeypatch.setenv(credential, "secret-key")
    values, output = from_folder(file.parent)
    assert (values[0] == MONGO, values[1] == QDRANT) == (kept != "MONGODB_URI", kept != "QDRANT_URL")
    assert f"{kept} of .env is not used: {credential} is set" in output
    assert "secret-key" not in output
    assert "example" not in output


LEAST = {
    "fastapi": (0, 115),
    "qdrant-client": (1, 13),
    "pymongo": (4, 6),
    "fastembed": (0, 2),
    "pydantic": (2, 0),
    "pydantic-settings": (2, 1),
}


@pytest.mark.states("S4-100", "S4-171", "S4-173", "S4-174", "S4-175", "S4-176", "S4-177")
@pytest.mark.parametrize(("name", "minimum"), LEAST.items())
def test_what_the_document_builds_on_is_installed_with_the_service(name: str, minimum: tuple[int, int]) -> None:
    needed = {re.split(r"[^\w.-]", require)[0] for require in requires("toolscript") or ()}
    assert name in needed or name == "pydantic"
    major, minor = version(name).split(".")[:2]
    assert (int(major), int(minor)) >= minimum


@pytest.mark.states("S4-101", "S4-172")
@pytest.mark.parametrize("name", ["sentence-transformers", "fastapi-mcp"])
def test_what_the_product_does_without_is_not_installed(name: str) -> None:
    assert not [require for require in requires("toolscript") or () if require.startswith(name)]
    with pytest.raises(PackageNotFoundError):
        version(name)
