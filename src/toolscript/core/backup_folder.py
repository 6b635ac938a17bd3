"""The folder of a backup: files with checksums, and a manifest that is written last.

Nobody but the owner can read it, and no name in it comes from the data. A folder without a manifest is a backup
that did not end.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from toolscript.core.errors import InvalidRequest, NotFound, SetupError
from toolscript.core.values import OnProgress, Progress

MANIFEST = "manifest.json"
# The format of the files. A program reads the formats up to its own.
FORMAT = 1
BLOCK = 1 << 20
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_][a-z0-9_.]*)?")

Manifest = Mapping[str, Any]


class _Counted(RawIOBase):
    """Writes to a file, and computes size and checksum on the way."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb")
        self._digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        super().close()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


class BackupWriter:
    """Writes a new folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = dict[str, dict[str, object]]()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_empty = next(folder.iterdir(), None) is None
            folder.chmod(0o700)
        except OSError as error:
            raise InvalidRequest(
                f"cannot write to {folder}: {error.strerror}", hint="choose another folder"
            ) from None
        if not is_empty:
            raise InvalidRequest(f"{folder} is not empty", hint="choose a folder that does not exist yet")

    @contextmanager
    def file(self, name: str, *, compressed: bool = True) -> Iterator[BinaryIO]:
        path = self.folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            with _Counted(path) as counted:
                if compressed:
                    with gzip.GzipFile("", "wb", compresslevel=1, fileobj=counted, mtime=0) as packed:
                        yield cast("BinaryIO", packed)
                else:
                    yield cast("BinaryIO", counted)
        except OSError as error:
            raise SetupError(
                f"cannot write {path}: {error.strerror}", hint="the folder needs more room, or another disk"
            ) from None
        self._files[name] = {"bytes": counted.size, "sha256": counted.sha256}

    @property
    def size(self) -> int:
        return sum(cast("int", facts["bytes"]) for facts in self._files.values())

    def finish(self, facts: Manifest) -> None:
        manifest = {"format": FORMAT, **facts, "files": self._files}
        text = json.dumps({**manifest, "sha256": _digest(manifest)}, ensure_ascii=False, indent=1)
        # Under another name first: a manifest is there only once it is whole.
        unfinished = self.folder / f".{MANIFEST}"
        with _Counted(unfinished) as file:
            file.write(text.encode())
        unfinished.replace(self.folder / MANIFEST)
        for folder in (*{(self.folder / name).parent for name in self._files}, self.folder):
            _sync(folder)

    def discard(self) -> None:
        """Remove what was written: it is of no use without a manifest."""
        for entry in list(self.folder.iterdir()):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        self.folder.rmdir()


class BackupReader:
    """Reads a folder whose manifest is whole. `verify` must have passed before anything in it is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = _manifest(folder)

    def verify(self, on_progress: OnProgress) -> int:
        """Read all files; raise unless each is the one that was written. Return their size."""
        files: Mapping[str, Mapping[str, Any]] = self.manifest["files"]
        total, done = sum(int(facts["bytes"]) for facts in files.values()) >> 20, 0
        for name, facts in files.items():
            digest = hashlib.sha256()
            for block in self.blocks(name):
                digest.update(block)
                done += len(block)
                on_progress(Progress("MiB verified", done >> 20, total))
            if digest.hexdigest() != facts["sha256"]:
                raise _damaged(self.folder, f"{name} is not the file that was written")
        return done

    def path(self, name: str) -> Path:
        if name not in self.manifest["files"] or not _NAME.fullmatch(name):
            raise _damaged(self.folder, "the manifest names a file that it does not list")
        return self.folder / name

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file as it is stored."""
        try:
            with self.path(name).open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
        except OSError as error:
            raise _damaged(self.folder, f"{name} cannot be read: {error.strerror}") from None

    @contextmanager
    def file(self, name: str) -> Iterator[BinaryIO]:
        """Open a compressed file."""
        with gzip.open(self.path(name), "rb") as file:
            yield cast("BinaryIO", file)


def _manifest(folder: Path) -> Manifest:
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        claimed = manifest.pop("sha256")
        is_whole = claimed == _digest(manifest)
    except OSError:
        raise NotFound(
            f"there is no backup in {folder}: it has no {MANIFEST}",
            hint="name the folder that `toolscript backup` wrote; one that was interrupted cannot be restored",
        ) from None
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise _damaged(folder, f"{MANIFEST} cannot be read") from None
    if not is_whole:
        raise _damaged(folder, f"{MANIFEST} is not the file that was written")
    if manifest["format"] > FORMAT:
        raise SetupError(
            f"{folder} was written by a newer toolscript ({manifest.get('toolscript')})",
            hint="restore it with that version, or a later one",
        )
    return cast("Manifest", manifest)


def _digest(manifest: Manifest) -> str:
    canonical = json.dumps(manifest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _damaged(folder: Path, problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"the backup in {folder} is damaged: {problem}", hint="nothing was changed; restore another backup"
    )


def _sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
