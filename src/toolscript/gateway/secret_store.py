"""Secrets of the gateway by name: in the system keyring, or in a file that only the user can read.

A secret is set in the keyring. Where that fails, because there is none or it is locked, it is set in the file,
which is read first. A keyring cannot list what it has, so the names are kept beside it.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from toolscript.core.atomic_files import write_json_atomically
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import PRIVATE_FOLDER, is_own, make_private, open_regular
from toolscript.gateway.config.variables import NAME_RULE, is_secret_name
from toolscript.gateway.system_keyring import KEYRING_SECONDS, Backend, KeyringFailed, SystemKeyring, find_backend

# Names of what a gateway keeps for itself; they are not listed, and no config can reference them.
INTERNAL = "oauth:"
FOLDER, FILE = "secrets", "secrets.json"
# The second index is apart: the first one is watched, and tokens change often.
NAMES, INTERNAL_NAMES = "names.json", "internal-names.json"
USUAL_DATA_FOLDER = ".toolscript"
MAX_VALUE = 64 << 10
LOCK_SECONDS, LOOK_SECONDS = 5.0, 0.005
# In the message for a secret that may be there later.
NO_KEYRING = "is in the system keyring, which cannot be used"

_MAX_INTERNAL = 500


class SecretStore(Protocol):
    """Keeps secrets by name: in the system keyring, or in a file that only the user can read."""

    @property
    def place(self) -> str:
        """For people: "the system keyring (Secret Service)", or the path of the file."""

    def get(self, name: str) -> str | None: ...
    def set(self, name: str, value: str) -> None: ...
    def remove(self, name: str) -> bool:
        """Return False if there was none."""

    def names(self) -> list[str]:
        """Return the names of secrets that people set, sorted."""


class Secrets:
    """Implements `SecretStore`. Every method raises SetupError where files or the keyring do not allow it."""

    def __init__(self, folder: Path, keyring: SystemKeyring) -> None:
        self._folder = folder
        self._keyring = keyring

    @property
    def place(self) -> str:
        """Where the next secret is set."""
        return self._keyring.place if self._keyring.is_there() else str(self._file)

    def place_of(self, name: str) -> str:
        return str(self._file) if name in self._values() else self._keyring.place

    def get(self, name: str) -> str | None:
        value = self._values().get(name)
        if value is not None or name not in self._index(name):
            return value
        try:
            return self._keyring.get(name)
        except KeyringFailed as error:
            raise _unreachable(name, error) from error

    def set(self, name: str, value: str) -> None:
        _require_sound(name, value)
        is_in_keyring = self._set_in_keyring(name, value)
        with self._locked():
            values = self._values()
            if is_in_keyring:
                if values.pop(name, None) is not None:
                    self._write(self._file, values)
            else:
                self._write(self._file, {**values, name: value})
            self._write(self._index_file(name), {**self._index(name), name: str(time.time_ns())})

    def remove(self, name: str) -> bool:
        with self._locked():
            values, index = self._values(), self._index(name)
            if name not in index:
                return False
            is_in_file = values.pop(name, None) is not None
            try:
                self._keyring.remove(name)
            except KeyringFailed as error:
                if not is_in_file:
                    raise _unreachable(name, error) from error
            if is_in_file:
                self._write(self._file, values)
            del index[name]
            self._write(self._index_file(name), index)
            return True

    def names(self) -> list[str]:
        return sorted(self._index(""))

    @property
    def _file(self) -> Path:
        return self._folder / FILE

    def _set_in_keyring(self, name: str, value: str) -> bool:
        try:
            self._keyring.set(name, value)
        except KeyringFailed:
            return False
        return True

    def _index_file(self, name: str) -> Path:
        return self._folder / (INTERNAL_NAMES if name.startswith(INTERNAL) else NAMES)

    def _index(self, name: str) -> dict[str, str]:
        return _read(self._index_file(name))

    def _values(self) -> dict[str, str]:
        return _read(self._file)

    def _write(self, path: Path, texts: Mapping[str, str]) -> None:
        try:
            write_json_atomically(path, texts)
        except OSError as error:
            raise _cannot_write(self._folder, error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock for reading and writing as one step, so that no secret of another process is lost."""
        try:
            make_private(self._folder)
            _require_private(self._folder)
            lock = open(self._folder / "lock", "ab", opener=_private)  # noqa: SIM115 - closed below
        except OSError as error:
            raise _cannot_write(self._folder, error) from error
        with lock:
            until = time.monotonic() + LOCK_SECONDS
            while not take(lock):
                if time.monotonic() > until:
                    raise SetupError("another process changes the secrets", hint="try again in a moment")
                time.sleep(LOOK_SECONDS)
            yield


def names_file(data_dir: Path) -> Path:
    """Return the file that changes whenever a person sets or removes a secret. It has no value."""
    return data_dir / FOLDER / NAMES


def open_secret_store(
    data_dir: Path,
    *,
    keyring_seconds: float = KEYRING_SECONDS,
    may_ask: bool = False,
    find: Callable[[], Backend | None] = find_backend,
) -> Secrets:
    """Open the secrets of a data folder. Neither files nor the keyring are touched before they are needed.

    A locked keyring `may_ask` a person to unlock it, for as long as `keyring_seconds`; else it is not used.
    """
    folder = data_dir.expanduser().absolute()
    is_usual = folder == Path.home().absolute() / USUAL_DATA_FOLDER
    service = "toolscript" if is_usual else f"toolscript {folder}"
    return Secrets(folder / FOLDER, SystemKeyring(service, keyring_seconds, find, may_ask=may_ask))


def _require_sound(name: str, value: str) -> None:
    is_internal = name.startswith(INTERNAL) and len(name) <= _MAX_INTERNAL
    if not (is_internal or is_secret_name(name)):
        raise InvalidRequest("this cannot be the name of a secret", hint=f"a name is {NAME_RULE}")
    if not value or "\0" in value or len(value.encode("utf-8", "replace")) > MAX_VALUE:
        raise InvalidRequest(
            f"the value of {name} cannot be kept", hint=f"give a text that is not empty, of {MAX_VALUE >> 10} KiB"
        )


def _read(path: Path) -> dict[str, str]:
    import json

    try:
        with os.fdopen(open_regular(path, follow_links=False), "r", encoding="utf-8") as file:
            _require_own(path, os.fstat(file.fileno()))
            data = json.load(file)
        if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
            raise ValueError("not names with texts")
        return data
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise SetupError(
            f"{path} cannot be read: {why}", hint="correct it, or remove it and set the secrets again"
        ) from error


def _require_own(path: Path, status: os.stat_result) -> None:
    if not is_own(status, or_root=False):
        raise SetupError(f"{path} belongs to another user", hint="remove it, and set the secrets again")
    # Systems without owners have access lists in place of these bits.
    if hasattr(os, "getuid") and stat.S_IMODE(status.st_mode) & 0o077:
        raise SetupError(
            f"other users can read {path}", hint=f"chmod 600 {path}; then replace the secrets that were in it"
        )


def _require_private(folder: Path) -> None:
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode) or not is_own(status, or_root=False):
        raise SetupError(
            f"{folder} is a link, or belongs to another user", hint="remove it, and set the secrets again"
        )
    folder.chmod(PRIVATE_FOLDER)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _cannot_write(folder: Path, error: OSError) -> SetupError:
    return SetupError(
        f"{folder} cannot be written: {error.strerror}",
        hint="choose another folder with --data-dir or TOOLSCRIPT_DATA_DIR",
    )


def _unreachable(name: str, error: KeyringFailed) -> SetupError:
    is_internal = name.startswith(INTERNAL)
    again = "sign in again" if is_internal else f"set the secret again: toolscript secrets set {name}"
    return SetupError(f"the secret {name} {NO_KEYRING}: {error}", hint=f"unlock the keyring, or {again}")
