"""Where files lie, and the paths their sources are known by."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from shlex import quote

from toolscript.adapters.source_files import known_endings, list_files
from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.ingest import IngestOutcome, IngestResult
from toolscript.sync.ingest_look import FoundFile

Found = FoundFile | IngestResult


class SourceNames:
    """Full paths, or those from a base folder on: such a library can be filled from another place later."""

    def __init__(self, paths: Sequence[str], base: str = "") -> None:
        self.roots = _outermost([_resolved(path) for path in paths])
        self._base = _resolved(base) if base else ""
        self._folders = {root: self.name_of(root) for root in self.roots if Path(root).is_dir()}

    @property
    def folders(self) -> list[str]:
        """The names of those roots that are folders, to be pruned.

        The base itself has none: in a library that is filled from several places, others have names like its own.
        """
        return [name for name in self._folders.values() if name]

    @property
    def away(self) -> list[str]:
        """The names of those folders of which nothing is called gone, because there is nothing in them at all."""
        return [name for root, name in self._folders.items() if name and _is_away(root)]

    def require_prunable(self) -> None:
        if "" in self._folders.values():
            raise InvalidRequest(
                "--prune cannot be told what of the library is of this base",
                hint="name the folders in it, such as `--base DIR DIR/notes DIR/papers`",
            )

    def name_of(self, path: str) -> str:
        """Empty for the base itself."""
        if not self._base:
            return path
        if not PurePosixPath(path).is_relative_to(self._base):
            raise InvalidRequest(
                f"{path} does not lie in {self._base}",
                hint="name files and folders below --base, or another --base",
            )
        name = PurePosixPath(path).relative_to(self._base).as_posix()
        return "" if name == "." else name

    def is_gone(self, name: str) -> bool:
        """Whether there is nothing any more where that source was. Of what others have named, nobody knows.

        Where a whole root is away or has nothing in it at all, its disk may be away: nothing of it is called gone.
        """
        if PurePosixPath(name).is_absolute() == bool(self._base):
            return False
        path = f"{self._base}/{name}" if self._base else name
        roots = [root for root in self._folders if PurePosixPath(path).is_relative_to(root)]
        return is_gone(path) and not any(map(_is_away, roots))

    def found(self) -> Iterator[Found]:
        for root in self.roots:
            yield from self._found_in(root)

    def count(self) -> int:
        return sum(1 for _ in self.found())

    def found_at(self, paths: Sequence[str]) -> Iterator[Found]:
        """What lies at paths that have changed: files of known kinds, and all of them in folders.

        Links are passed over, as they are in folders: nobody has named them.
        """
        for path in paths:
            if _is_link(path):
                continue
            if Path(path).suffix.lower() in known_endings or Path(path).is_dir():
                try:
                    yield from self._found_in(path)
                except NotFound:
                    # It came and went.
                    continue

    def _found_in(self, root: str) -> Iterator[Found]:
        for one in list_files(root):
            name = self.name_of(one.path)
            if one.problem:
                yield IngestResult(name or one.path, IngestOutcome.SKIPPED, problem=one.problem)
            else:
                yield FoundFile(one.path, name)


def _is_link(path: str) -> bool:
    """Or lies behind one."""
    try:
        return Path(path).resolve().as_posix() != Path(path).absolute().as_posix()
    except (OSError, RuntimeError):
        return True


def _is_away(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def is_gone(path: str) -> bool:
    """Not where it only cannot be looked at: what lies on a disk that is away is not gone."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _resolved(path: str) -> str:
    try:
        return Path(path).expanduser().resolve(strict=True).as_posix()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(
            f"there is no {path}",
            hint="name files and folders that are there; "
            f"`toolscript library remove {quote(path)}` removes what the library still has of it",
        ) from error


def _outermost(paths: Sequence[str]) -> list[str]:
    """What lies in another of them is found there."""
    distinct = list(dict.fromkeys(paths))
    return [
        path
        for path in distinct
        if not any(path != other and PurePosixPath(path).is_relative_to(other) for other in distinct)
    ]
