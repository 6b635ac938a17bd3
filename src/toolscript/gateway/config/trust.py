"""Trust records of projects' config files, each with the content it applies to.

A project's file may come from any author, and it decides which programs start and where data is sent. So it is
only data until the user has reviewed it. A record has the path and a hash of the content: a file that is changed,
replaced or copied elsewhere is a new one.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, SetupError
from toolscript.core.own_files import make_private
from toolscript.gateway.config.jsonc import read_text

FOLDER = Path(".toolscript") / "trusted"


class TrustState(StrEnum):
    """The user's decision about the current content of a file."""

    TRUSTED = "trusted"
    REFUSED = "refused"
    CHANGED = "changed"
    UNKNOWN = "unknown"


Trust = Callable[[Path, str], TrustState]


def trusts_all(_: Path, __: str) -> TrustState:
    """Trust every file: for the user's own files."""
    return TrustState.TRUSTED


def how_to_trust(path: Path) -> str:
    """Return the instruction; agents read it, too, but a person must decide."""
    return f"a person must review it: `toolscript trust {shlex.quote(str(path))}` in a terminal"


@dataclass(frozen=True)
class TrustRecord:
    path: str
    sha256: str
    trusted: bool


class TrustStore:
    """Stored in the home folder only: a setting for its location could come from a project, too."""

    def __init__(self, home: Path) -> None:
        self._folder = home.absolute() / FOLDER

    def file_of(self, path: Path) -> Path:
        name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{name}.json"

    def state_of(self, path: Path, text: str) -> TrustState:
        record = self._read(self.file_of(path))
        if record is None or record.path != str(path.absolute()):
            return TrustState.UNKNOWN
        if record.sha256 != _hash(text):
            return TrustState.CHANGED
        return TrustState.TRUSTED if record.trusted else TrustState.REFUSED

    def decide(self, path: Path, text: str, *, trusted: bool) -> None:
        from toolscript.gateway.config.write import write_file

        record = TrustRecord(str(path.absolute()), _hash(text), trusted)
        try:
            make_private(self._folder)
            write_file(self.file_of(path), json.dumps(asdict(record)))
        except OSError as error:
            raise SetupError(
                f"{self._folder} cannot be written: {error.strerror}", hint="check who may write there"
            ) from error

    def forget(self, path: Path) -> bool:
        """Remove the record; return whether there was one."""
        existed = self.file_of(path).exists()
        self.file_of(path).unlink(missing_ok=True)
        return existed

    def records(self) -> Iterator[TrustRecord]:
        for file in sorted(self._folder.glob("*.json")):
            if (record := self._read(file)) is not None:
                yield record

    def _read(self, file: Path) -> TrustRecord | None:
        """Return the record, or None if it is missing, malformed or of another user."""
        try:
            text = read_text(file, only_ours=True)
            data = json.loads(text) if text is not None else None
            return None if data is None else TrustRecord(data["path"], data["sha256"], data["trusted"] is True)
        except (ConfigInvalid, ValueError, KeyError, TypeError, RecursionError):
            return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
