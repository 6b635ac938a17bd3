"""Record of what `setup` and `gateway install` wrote: each step can be taken back, byte for byte.

A step is recorded before it writes, with the earlier content of its files. The record is readable by its user
alone, as that content may have secrets.
"""

import base64
import hashlib
import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolscript.core.errors import SetupError
from toolscript.gateway.config.write import PRIVATE, write_file

FILE = "undo.json"
ABSENT, REGULAR, LINK = "absent", "file", "link"


@dataclass(frozen=True)
class PathState:
    """What is at a path. `content`: that of a file in base64, the target of a link; `digest` is the hash of it."""

    kind: str
    content: str = ""
    mode: int = 0
    digest: str = ""

    def without_content(self) -> "PathState":
        return replace(self, content="")


@dataclass(frozen=True)
class Change:
    """`after` is None until the step is finished; `planned` is the digest of what it was about to write.

    `is_cache`: the file is ours to take back, whatever it holds.
    """

    path: str
    before: PathState
    after: PathState | None = None
    planned: str = ""
    is_cache: bool = False

    def is_changed(self, now: PathState) -> bool:
        """Return whether the file is neither as the step left it nor as it was before."""
        if self.is_cache or now == self.before.without_content():
            return False
        if self.after is not None:
            return now != self.after
        # The step was interrupted: only what it planned to write is known to be ours.
        return not self.planned or now.digest != self.planned


@dataclass(frozen=True)
class Step:
    name: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Record:
    """`folders` did not exist before the first step that needed them."""

    steps: tuple[Step, ...] = ()
    folders: tuple[str, ...] = ()


class UndoJournal:
    """The record in the data folder, which goes when the last step is taken back."""

    def __init__(self, data_folder: Path) -> None:
        self._file = data_folder.absolute() / FILE

    def names(self) -> list[str]:
        """Return the names of the recorded steps, in the order they were taken."""
        return list(dict.fromkeys(step.name for step in self._read().steps))

    def folders(self) -> tuple[str, ...]:
        """Return the folders that recorded steps made."""
        return self._read().folders

    def paths(self, name: str) -> list[tuple[str, ...]]:
        """Return the paths of each step of this name, in the order in which they were recorded."""
        steps = [step for step in self._read().steps if step.name == name]
        return [tuple(change.path for change in step.changes) for step in steps]

    def changed(self, name: str) -> list[str]:
        """Return the files that were changed since the last step of this name."""
        steps = [step for step in self._read().steps if step.name == name]
        return _changed(steps[-1]) if steps else []

    @contextmanager
    def recorded(
        self, name: str, paths: Sequence[Path], planned: Mapping[Path, str | None] | None = None
    ) -> Iterator[None]:
        """Record the paths before and after the block, which may write these and no others.

        `planned`: texts that the block is about to write. An interrupted step is taken back by these alone.
        """
        record = self._read()
        digests = {str(path.absolute()): _digest(text.encode()) for path, text in (planned or {}).items() if text}
        changes = tuple(
            Change(path, state_of(Path(path)), planned=digests.get(path, ""))
            for path in dict.fromkeys(str(path.absolute()) for path in paths)
        )
        made = _missing_folders([*paths, self._file])
        folders = (*record.folders, *(folder for folder in made if folder not in record.folders))
        self._write(Record((*record.steps, Step(name, changes)), folders))
        try:
            yield
        finally:
            done = tuple(
                replace(change, after=state_of(Path(change.path)).without_content()) for change in changes
            )
            self._write(Record((*record.steps, Step(name, done)), folders))

    @contextmanager
    def recorded_cache(self, name: str, folder: Path) -> Iterator[None]:
        """Record the files that the block makes in a cache; taken back, they go, whatever they hold by then."""
        with self._recorded_in(name, folder, is_cache=True):
            yield

    @contextmanager
    def recorded_new(self, name: str, folder: Path) -> Iterator[None]:
        """Record the files that the block makes in a folder; taken back, they go unless changed since."""
        with self._recorded_in(name, folder, is_cache=False):
            yield

    @contextmanager
    def _recorded_in(self, name: str, folder: Path, *, is_cache: bool) -> Iterator[None]:
        missing, present = _missing_folders([folder / name, self._file]), {*folder.rglob("*")}
        try:
            yield
        finally:
            made = [path for path in sorted(folder.rglob("*")) if path not in present]
            after = {
                path: None if is_cache else state_of(path).without_content() for path in made if path.is_file()
            }
            changes = tuple(
                Change(str(path.absolute()), PathState(ABSENT), state, is_cache=is_cache)
                for path, state in after.items()
            )
            folders = [*missing, *(str(path.absolute()) for path in made if path.is_dir())]
            record = self._read()
            new = (folder for folder in folders if folder not in record.folders)
            self._write(Record((*record.steps, Step(name, changes)), (*record.folders, *new)))

    def undo(self, name: str) -> list[str]:
        """Take back all steps of this name. Return the files that were changed since, which stay as they are."""
        kept = self.restore(name)
        self.forget(name)
        return kept

    def restore(self, name: str) -> list[str]:
        """Do what `undo` does to files, but keep the record."""
        steps = [step for step in self._read().steps if step.name == name]
        return list(dict.fromkeys(path for step in reversed(steps) for path in _restore(step)))

    def forget(self, name: str) -> None:
        record = self._read()
        steps = tuple(step for step in record.steps if step.name != name)
        if steps:
            self._write(Record(steps, remove_empty(record.folders)))
        else:
            self._file.unlink(missing_ok=True)
            remove_empty(record.folders)

    def _read(self) -> Record:
        try:
            data = json.loads(self._file.read_text("utf-8"))
            return Record(tuple(map(_step_of, data["steps"])), tuple(map(str, data["folders"])))
        except FileNotFoundError:
            return Record()
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SetupError(
                f"{self._file} cannot be read: {error}", hint="move it away; what it recorded is undone by hand"
            ) from error

    def _write(self, record: Record) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._file, json.dumps(asdict(record)), PRIVATE)
        except OSError as error:
            raise SetupError(
                f"{self._file.parent} cannot be written: {error.strerror}", hint="choose another with --data-dir"
            ) from error


def _step_of(data: Any) -> Step:
    changes = (
        Change(
            str(change["path"]),
            PathState(**change["before"]),
            None if change["after"] is None else PathState(**change["after"]),
            str(change.get("planned", "")),
            change.get("is_cache") is True,
        )
        for change in data["changes"]
    )
    return Step(str(data["name"]), tuple(changes))


def state_of(path: Path) -> PathState:
    """Return what is at the path, with links as links."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return PathState(LINK, str(path.readlink()), digest=str(path.readlink()))
        content = path.read_bytes()
    except FileNotFoundError:
        return PathState(ABSENT)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}", hint="check who may read it") from error
    mode = stat.S_IMODE(status.st_mode)
    return PathState(REGULAR, base64.b64encode(content).decode(), mode, _digest(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(step: Step) -> list[str]:
    states = ((change, state_of(Path(change.path)).without_content()) for change in step.changes)
    return [change.path for change, now in states if change.is_changed(now)]


def _restore(step: Step) -> list[str]:
    """Put the files of a step back, all of them or none: a backup stays beside a file that has changed since."""
    if changed := _changed(step):
        return changed
    for change in reversed(step.changes):
        path = Path(change.path)
        if state_of(path).without_content() != change.before.without_content():
            _put(path, change.before)
    return []


def _put(path: Path, before: PathState) -> None:
    try:
        if before.kind != REGULAR:
            path.unlink(missing_ok=True)
        if before.kind == LINK:
            path.symlink_to(before.content)
        if before.kind == REGULAR:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, base64.b64decode(before.content), before.mode)
    except OSError as error:
        raise SetupError(
            f"{path} cannot be restored: {error.strerror}", hint="check who may write there"
        ) from error


def _missing_folders(paths: Sequence[Path]) -> list[str]:
    """Return the folders that have to be made for these paths, the outer before the inner."""
    missing = {parent for path in paths for parent in path.absolute().parents if not parent.exists()}
    return [str(folder) for folder in sorted(missing, key=lambda folder: len(folder.parts))]


def remove_empty(folders: Sequence[str]) -> tuple[str, ...]:
    """Remove those that are empty, the inner before the outer; return the others."""
    for folder in sorted(folders, key=lambda folder: -len(Path(folder).parts)):
        with suppress(OSError):
            Path(folder).rmdir()
    return tuple(folder for folder in folders if Path(folder).exists())
