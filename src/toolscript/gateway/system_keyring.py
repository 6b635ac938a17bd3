"""The keyring of the operating system, with a bound on every wait: it may ask a person to unlock it."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Protocol, TypeVar

KEYRING_SECONDS = 5.0
# How long a keyring that did not answer is not asked again.
RETRY_SECONDS = 20.0
_BACKENDS = {
    "linux": ("SecretService.Keyring", "kwallet.DBusKeyring"),
    "darwin": ("macOS.Keyring",),
    "win32": ("Windows.WinVaultKeyring",),
}
_SECRET_SERVICE, _DEFAULT_COLLECTION = "keyring.backends.SecretService", "/org/freedesktop/secrets/aliases/default"
# Of modules of backends, as people know them.
_PLACES = {
    "SecretService": "Secret Service",
    "libsecret": "Secret Service",
    "kwallet": "KWallet",
    "macOS": "macOS Keychain",
    "Windows": "Windows Credential Manager",
}

# Errors of the library `keyring` that are not about one request.
_UNUSABLE = frozenset({"InitError", "KeyringLocked", "NoKeyringError"})

T = TypeVar("T")


class Backend(Protocol):
    """What is used of a backend of the library `keyring`."""

    def get_password(self, service: str, username: str, /) -> str | None: ...
    def set_password(self, service: str, username: str, password: str, /) -> None: ...
    def delete_password(self, service: str, username: str, /) -> None: ...


class KeyringFailed(Exception):
    """There is no keyring, it is locked, it did not answer in time, or it refused. The message has no secret."""


class KeyringRefused(KeyringFailed):
    """It refused this one request, such as a value that is too long for it."""


def find_backend() -> Backend | None:
    """Return the backend that the user chose for the library, else that of this system; None without a keyring.

    The library chooses once in a process, among all packages that offer one, also such as write clear text.
    """
    from keyring import core
    from keyring.backends import fail, null

    chosen = core.load_env() or core.load_config()
    if chosen is not None:
        return None if isinstance(chosen, fail.Keyring | null.Keyring) else chosen
    for name in _BACKENDS.get(sys.platform, ()):
        with suppress(ImportError, RuntimeError):
            return core.load_keyring(f"keyring.backends.{name}")
    return None


def is_locked(backend: Backend) -> bool:
    """Return whether a Secret Service would ask a person to unlock it, without asking. Others are said not to."""
    if type(backend).__module__ != _SECRET_SERVICE:
        return False
    from secretstorage import Collection, dbus_init

    with closing(dbus_init()) as bus:
        return bool(Collection(bus, _DEFAULT_COLLECTION).is_locked())


class SystemKeyring:
    """Secrets of one service. Every method raises KeyringFailed in time; then it fails at once for a while.

    Only where a person waits it `may_ask` to be unlocked: a gateway would ask again and again.
    """

    def __init__(
        self,
        service: str,
        seconds: float = KEYRING_SECONDS,
        find: Callable[[], Backend | None] = find_backend,
        *,
        may_ask: bool = False,
    ) -> None:
        self._may_ask = may_ask
        self._service = service
        self._seconds = seconds
        self._find = find
        self._backend: Backend | None = None
        self._failed: tuple[float, str] | None = None

    def is_there(self) -> bool:
        """Return whether there is one. It may still be locked."""
        try:
            self._within(self._found)
        except KeyringFailed:
            return False
        return True

    @property
    def place(self) -> str:
        if self._backend is None:
            return "the system keyring"
        module = type(self._backend).__module__.rpartition(".")[2]
        return f"the system keyring ({_PLACES.get(module, module)})"

    def get(self, name: str) -> str | None:
        return self._within(lambda: self._unlocked().get_password(self._service, name))

    def set(self, name: str, value: str) -> None:
        self._within(lambda: self._unlocked().set_password(self._service, name, value))

    def remove(self, name: str) -> None:
        def remove() -> None:
            backend = self._unlocked()
            if backend.get_password(self._service, name) is not None:
                backend.delete_password(self._service, name)

        self._within(remove)

    def _unlocked(self) -> Backend:
        backend = self._found()
        if not self._may_ask and is_locked(backend):
            raise KeyringFailed("it is locked")
        return backend

    def _found(self) -> Backend:
        if self._backend is None:
            self._backend = self._find()
        if self._backend is None:
            raise KeyringFailed("this system has no keyring")
        return self._backend

    def _within(self, work: Callable[[], T]) -> T:
        if self._failed and time.monotonic() < self._failed[0]:
            raise KeyringFailed(self._failed[1])
        try:
            value = _in_thread(work, self._seconds)
        except KeyringRefused:
            raise
        except KeyringFailed as error:
            self._failed = time.monotonic() + RETRY_SECONDS, str(error)
            raise
        self._failed = None
        return value


def _in_thread(work: Callable[[], T], seconds: float) -> T:
    """Leave a thread that hangs behind: a prompt that nobody answers would hold the process for ever."""
    values, failures = list[T](), list[KeyringFailed]()
    ended = threading.Event()

    def run() -> None:
        try:
            values.append(work())
        except Exception as error:  # noqa: BLE001 - each backend has errors of its own, and of its libraries
            failures.append(_failure(error))
        finally:
            ended.set()

    threading.Thread(target=run, name="keyring", daemon=True).start()
    if not ended.wait(seconds):
        raise KeyringFailed(f"the system keyring did not answer within {seconds:g} s")
    if failures:
        raise failures[0]
    return values[0]


def _failure(error: Exception) -> KeyringFailed:
    if isinstance(error, KeyringFailed):
        return error
    if isinstance(error, ModuleNotFoundError):
        return KeyringFailed("the Python package keyring is not installed")
    # Its text may be that of any library.
    name = type(error).__name__
    return (KeyringFailed if name in _UNUSABLE else KeyringRefused)(f"the system keyring failed ({name})")
