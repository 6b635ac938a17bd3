"""Which config files of projects a person trusts, each with what was in it when they said so.

A project's file comes with the project, from whoever wrote it, and says which programs are started and what is
sent where. So it is only data until somebody has looked at it. What is remembered is its path and a hash of its
content: a file that is changed, replaced or copied elsewhere is a new one.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, SetupError
from toolscript.gateway.config.jsonc import read_text

FOLDER = Path(".toolscript") / "trusted"
PRIVATE_FOLDER = 0o700


class Standing(StrEnum):
    """What a person has said of a file as it is now."""

    TRUSTED = "trusted"
    REFUSED = "refused"
    CHANGED = "changed"
    UNKNOWN = "unknown"


Trust = Callable[[Path, str], Standing]


def trusts_all(_: Path, __: str) -> Standing:
    """For files that are the person's own."""
    return Standing.TRUSTED


def how_to_trust(path: Path) -> str:
    """For whoever reads it, an agent too: it is a person who looks and decides."""
    return f"a person has to look at it: `toolscript trust {shlex.quote(str(path))}` in a terminal"


@dataclass(frozen=True)
class TrustRecord:
    path: str
    sha256: str
    trusted: bool


class TrustStore:
    """In the home folder and nowhere else: a setting that moves it could come with a project as well."""

    def __init__(self, home: Path) -> None:
        self._folder = home.absolute() / FOLDER

    def file_of(self, path: Path) -> Path:
        name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{name}.json"

    def standing(self, path: Path, text: str) -> Standing:
        record = self._read(self.file_of(path))
        if record is None or record.path != str(path.absolute()):
            return Standing.UNKNOWN
        if record.sha256 != _hash(text):
            return Standing.CHANGED
        return Standing.TRUSTED if record.trusted else Standing.REFUSED

    def decide(self, path: Path, text: str, *, trusted: bool) -> None:
        from toolscript.gateway.config.write import write_file

        record = TrustRecord(str(path.absolute()), _hash(text), trusted)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
            write_file(self.file_of(path), json.dumps(asdict(record)))
        except OSError as error:
            raise SetupError(
                f"{self._folder} cannot be written: {error.strerror}", hint="check who may write there"
            ) from error

    def forget(self, path: Path) -> bool:
        """Whether there was anything to forget."""
        known = self.file_of(path).exists()
        self.file_of(path).unlink(missing_ok=True)
        return known

    def records(self) -> Iterator[TrustRecord]:
        for file in sorted(self._folder.glob("*.json")):
            if (record := self._read(file)) is not None:
                yield record

    def _read(self, file: Path) -> TrustRecord | None:
        """None also for what is not as it was written, or not by this person."""
        try:
            text = read_text(file, only_ours=True)
            data = json.loads(text) if text is not None else None
            return None if data is None else TrustRecord(data["path"], data["sha256"], data["trusted"] is True)
        except (ConfigInvalid, ValueError, KeyError, TypeError, RecursionError):
            return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
