"""Contract of SecretStore: in a file, in a keyring, and in a real Secret Service."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.secret_service import IS_INSTALLED, MISSING, secret_service
from toolscript.core.errors import InvalidRequest
from toolscript.gateway.secret_store import SecretStore, open_secret_store
from toolscript.gateway.system_keyring import Backend, find_backend

pytestmark = pytest.mark.requirement("GW-002")

OPENERS = [
    "file",
    "keyring",
    pytest.param("secret_service", marks=pytest.mark.skipif(not IS_INSTALLED, reason=MISSING)),
]
PLACES = {"keyring": "the system keyring", "secret_service": "the system keyring (Secret Service)"}
ODD = "line one\nline two '\"\\ ${HOME} $${ ünïcödé 🔑\t"


class MemoryKeyring:
    """A keyring in memory. What it holds outlives a store, like that of a system."""

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str, /) -> str | None:
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str, /) -> None:
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str, /) -> None:
        del self.passwords[service, username]


@pytest.fixture(scope="module")
def bus() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="ts-") as folder, secret_service(Path(folder) / "bus") as variables:
        yield dict(variables)


@pytest.fixture(params=OPENERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def reopen(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], SecretStore]:
    """Return what opens the store, each time as another process would."""
    find: Callable[[], Backend | None] = lambda: None  # noqa: E731
    if kind == "keyring":
        backend = MemoryKeyring()
        find = lambda: backend  # noqa: E731
    elif kind == "secret_service":
        for name, value in request.getfixturevalue("bus").items():
            monkeypatch.setenv(name, value)
        find = find_backend
    return lambda: open_secret_store(tmp_path / "data", find=find)


@pytest.fixture
def store(reopen: Callable[[], SecretStore]) -> SecretStore:
    return reopen()


def test_a_secret_is_what_was_set(store: SecretStore) -> None:
    assert store.get("TOKEN") is None
    store.set("TOKEN", "first")
    assert store.get("TOKEN") == "first"
    store.set("TOKEN", "second")
    assert (store.get("TOKEN"), store.names()) == ("second", ["TOKEN"])


@pytest.mark.parametrize(
    "value", [ODD, " spaces at both ends ", "x" * (64 << 10), "="], ids=["odd", "spaces", "long", "short"]
)
def test_a_value_is_kept_to_the_letter(reopen: Callable[[], SecretStore], value: str) -> None:
    reopen().set("TOKEN", value)
    assert reopen().get("TOKEN") == value


def test_another_process_finds_what_was_set(reopen: Callable[[], SecretStore]) -> None:
    reopen().set("b.c-d_1", "1")
    reopen().set("A", "2")
    assert (reopen().names(), reopen().get("A"), reopen().get("b.c-d_1")) == (["A", "b.c-d_1"], "2", "1")


def test_what_is_removed_is_gone(reopen: Callable[[], SecretStore]) -> None:
    reopen().set("TOKEN", "x")
    assert reopen().remove("TOKEN") is True
    assert (reopen().get("TOKEN"), reopen().names(), reopen().remove("TOKEN")) == (None, [], False)


def test_secrets_of_the_gateway_itself_are_kept_and_not_listed(reopen: Callable[[], SecretStore]) -> None:
    name = "oauth:https://example.org/mcp?a=b c"
    reopen().set(name, '{"token": "x"}')
    reopen().set("TOKEN", "y")
    assert (reopen().get(name), reopen().names()) == ('{"token": "x"}', ["TOKEN"])
    assert (reopen().remove(name), reopen().get(name), reopen().remove(name)) == (True, None, False)


def test_two_data_folders_have_secrets_of_their_own(reopen: Callable[[], SecretStore], tmp_path: Path) -> None:
    other = open_secret_store(tmp_path / "other")
    reopen().set("TOKEN", "x")
    assert (other.get("TOKEN"), other.names()) == (None, [])


@pytest.mark.parametrize("name", ["", "1A", "a b", "a/b", "ä", "a" * 65, "keyring:a", "a\n"])
def test_a_name_that_no_config_could_reference_is_refused(store: SecretStore, name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be the name"):
        store.set(name, "x")
    assert store.names() == []


@pytest.mark.parametrize("value", ["", "a\0b", "x" * ((64 << 10) + 1)], ids=["empty", "nul", "too long"])
def test_a_value_that_no_server_could_get_is_refused_without_being_shown(store: SecretStore, value: str) -> None:
    with pytest.raises(InvalidRequest, match="value of TOKEN cannot be kept"):
        store.set("TOKEN", value)
    assert store.get("TOKEN") is None


def test_the_place_is_one_that_people_know(store: SecretStore, kind: str, tmp_path: Path) -> None:
    place = store.place
    if kind == "file":
        assert place == str(tmp_path / "data" / "secrets" / "secrets.json")
    else:
        assert place.startswith(PLACES[kind])


def test_only_a_file_has_the_value(store: SecretStore, kind: str, tmp_path: Path) -> None:
    store.set("TOKEN", "a-secret-value")
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert any("a-secret-value" in path.read_text() for path in files) == (kind == "file")
