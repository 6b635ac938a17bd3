"""Large results of tools, kept on disk for a while, so that a model can read them in parts."""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MAX_RESULTS = 64
MAX_BYTES = 256 * 1024 * 1024
MAX_AGE_SECONDS = 24 * 3600.0

_KEY = re.compile(r"[A-Za-z0-9_-]{16}")
_FILE = re.compile(r"([A-Za-z0-9_-]{16})\.(\d{1,3})\.(text|json|bytes)")
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    BYTES = "bytes"


@dataclass(frozen=True)
class Part:
    """A part of a result to keep; its bytes may be made while they are written."""

    format: Format
    chunks: Iterable[bytes]


@dataclass(frozen=True)
class KeptPart:
    path: Path
    format: Format
    size: int


class ResultStore:
    """Files that only their user can read. Keys are random: who was not given one cannot guess it.

    Gateways and clients of one user share the folder, and what one keeps is there after a restart.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_results: int = MAX_RESULTS,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._max_results = max_results
        self._max_bytes = max_bytes
        self._clock = clock

    def keep(self, parts: Sequence[Part]) -> str:
        """Write the parts and return their key; make room by removing what is too old, then the oldest."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        key = secrets.token_urlsafe(12)
        for number, part in enumerate(parts, 1):
            path = self._folder / f"{key}.{number}.{part.format}"
            with os.fdopen(os.open(path, _WRITE, 0o600), "wb") as file:
                file.writelines(part.chunks)
        self._make_room(key)
        return key

    def find(self, key: str, number: int) -> KeptPart | None:
        if _KEY.fullmatch(key) is None:
            return None
        for kept_format in Format:
            path = self._folder / f"{key}.{number}.{kept_format}"
            try:
                status = path.stat()
            except OSError:
                continue
            if self._clock() - status.st_mtime <= MAX_AGE_SECONDS:
                return KeptPart(path, kept_format, status.st_size)
        return None

    def _make_room(self, newest: str) -> None:
        """Remove what is too old, and the oldest results while there are too many; never the newest."""
        files: dict[str, list[tuple[Path, int]]] = {}
        times: dict[str, float] = {}
        for path in self._folder.iterdir():
            name = _FILE.fullmatch(path.name)
            if name is None:
                continue
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            files.setdefault(name[1], []).append((path, status.st_size))
            times[name[1]] = max(times.get(name[1], 0.0), status.st_mtime)
        left, size = len(files), sum(size for paths in files.values() for _, size in paths)
        for key in sorted(files, key=lambda key: (key == newest, times[key])):
            is_old = self._clock() - times[key] > MAX_AGE_SECONDS
            if key == newest or not (is_old or left > self._max_results or size > self._max_bytes):
                break
            left -= 1
            for path, bytes_of_file in files[key]:
                size -= bytes_of_file
                path.unlink(missing_ok=True)
