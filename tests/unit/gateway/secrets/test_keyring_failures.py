"""A keyring that is locked, hangs or refuses: nothing waits for it for long, and no secret is lost."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolscript.core.errors import SetupError
from toolscript.gateway.secret_store import Secrets, open_secret_store
from toolscript.gateway.system_keyring import KeyringFailed, SystemKeyring, find_backend

pytestmark = pytest.mark.requirement("GW-002")

SECONDS = 0.2


class Keyring:
    """A keyring that can be locked, or wait for a person who is not there."""

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.locked = False
        self.nobody = threading.Event()
        self.nobody.set()

    def get_password(self, service: str, username: str, /) -> str | None:
        self._unlock()
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str, /) -> None:
        self._unlock()
        if len(password) > 2_560:
            raise OSError(1783, f"The stub received bad data: {password}")
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str, /) -> None:
        self._unlock()
        del self.passwords[service, username]

    def _unlock(self) -> None:
        self.nobody.wait()
        if self.locked:
            raise RuntimeError("Failed to unlock the collection!")


@pytest.fixture
def keyring() -> Keyring:
    return Keyring()


@pytest.fixture
def reopen(keyring: Keyring, tmp_path: Path) -> Callable[[], Secrets]:
    return lambda: open_secret_store(tmp_path, keyring_seconds=SECONDS, find=lambda: keyring)


def test_a_secret_is_set_in_the_file_while_the_keyring_is_locked(
    reopen: Callable[[], Secrets], keyring: Keyring, tmp_path: Path
) -> None:
    keyring.locked = True
    reopen().set("TOKEN", "x")
    assert (reopen().get("TOKEN"), reopen().place_of("TOKEN")) == ("x", str(tmp_path / "secrets" / "secrets.json"))


def test_the_newest_value_counts_wherever_it_is(reopen: Callable[[], Secrets], keyring: Keyring) -> None:
    reopen().set("TOKEN", "first")
    keyring.locked = True
    reopen().set("TOKEN", "second")
    keyring.locked = False
    assert reopen().get("TOKEN") == "second"
    reopen().set("TOKEN", "third")
    assert (reopen().get("TOKEN"), reopen().place_of("TOKEN").partition(" (")[0]) == (
        "third",
        "the system keyring",
    )
    assert reopen().remove("TOKEN")
    assert (reopen().get("TOKEN"), keyring.passwords) == (None, {})


def test_a_secret_in_a_locked_keyring_is_not_said_to_be_missing(
    reopen: Callable[[], Secrets], keyring: Keyring
) -> None:
    reopen().set("TOKEN", "x")
    keyring.locked = True
    for use in (reopen().get, reopen().remove):
        with pytest.raises(SetupError, match="TOKEN is in the system keyring, which cannot be used") as refusal:
            use("TOKEN")
        assert "toolscript secrets set TOKEN" in refusal.value.hint
    keyring.locked = False
    assert reopen().get("TOKEN") == "x"


def test_a_keyring_that_hangs_is_waited_for_once(reopen: Callable[[], Secrets], keyring: Keyring) -> None:
    reopen().set("TOKEN", "x")
    keyring.nobody.clear()
    secrets, began = reopen(), time.monotonic()
    for _ in range(20):
        with pytest.raises(SetupError, match="did not answer"):
            secrets.get("TOKEN")
    assert time.monotonic() - began < 10 * SECONDS
    keyring.nobody.set()


def test_a_secret_that_the_keyring_refuses_is_set_in_the_file(
    reopen: Callable[[], Secrets], keyring: Keyring
) -> None:
    reopen().set("oauth:long", "x" * 5_000)
    assert (reopen().get("oauth:long"), keyring.passwords) == ("x" * 5_000, {})


def test_a_keyring_that_refused_one_secret_still_has_the_others(
    reopen: Callable[[], Secrets], keyring: Keyring
) -> None:
    secrets = reopen()
    secrets.set("TOKEN", "x")
    secrets.set("LONG", "x" * 5_000)
    assert (secrets.get("TOKEN"), secrets.get("LONG")) == ("x", "x" * 5_000)
    assert len(keyring.passwords) == 1


def test_a_sign_in_that_cannot_be_read_is_not_said_to_be_set_by_hand(
    reopen: Callable[[], Secrets], keyring: Keyring
) -> None:
    reopen().set("oauth:remote:1", "x")
    keyring.locked = True
    with pytest.raises(SetupError) as failure:
        reopen().get("oauth:remote:1")
    assert failure.value.hint == "unlock the keyring, or sign in again"


def test_an_error_of_a_keyring_does_not_repeat_its_text() -> None:
    keyring = SystemKeyring("test", SECONDS, Keyring)
    with pytest.raises(KeyringFailed) as failure:
        keyring.set("TOKEN", "secret" * 1_000)
    assert str(failure.value) == "the system keyring failed (OSError)"


def test_a_missing_secret_does_not_ask_the_keyring(tmp_path: Path) -> None:
    def find() -> None:
        raise AssertionError("the keyring was asked")

    assert open_secret_store(tmp_path, find=find).get("TOKEN") is None


@pytest.mark.parametrize("backend", ["null", "fail"])
def test_a_user_can_choose_the_file(backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"keyring.backends.{backend}.Keyring")
    assert find_backend() is None
    assert open_secret_store(tmp_path).place == str(tmp_path / "secrets" / "secrets.json")


def test_a_choice_that_does_not_exist_leaves_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "no.such.Keyring")
    open_secret_store(tmp_path).set("TOKEN", "x")
    assert open_secret_store(tmp_path).get("TOKEN") == "x"


def test_without_the_library_secrets_are_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    open_secret_store(tmp_path).set("TOKEN", "x")
    assert (tmp_path / "secrets" / "secrets.json").exists()


def test_without_a_session_bus_secrets_are_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND", raising=False)
    open_secret_store(tmp_path).set("TOKEN", "x")
    assert (tmp_path / "secrets" / "secrets.json").exists()
