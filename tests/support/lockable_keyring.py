"""A keyring in a file. It is locked while there is a file `locked` beside it."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class Keyring(KeyringBackend):
    priority = 1  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._read(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = {key: value for key, value in self._read().items() if key != f"{service}/{username}"}
        self._write(kept)

    @property
    def _folder(self) -> Path:
        return Path(os.environ["LOCKABLE_KEYRING"])

    def _read(self) -> dict[str, str]:
        if (self._folder / "locked").exists():
            raise KeyringLocked("Failed to unlock the collection!")
        file = self._folder / "keyring.json"
        return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}

    def _write(self, passwords: dict[str, str]) -> None:
        (self._folder / "keyring.json").write_text(json.dumps(passwords), "utf-8")
